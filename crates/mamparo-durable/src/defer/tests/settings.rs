use http::header;

use super::support::payment;
use crate::defer::{DeferBuilder, DeferPolicy, MAX_BODY_BYTES};
use crate::web::Judge;

#[test]
fn settings_that_make_no_sense_are_refused() {
    let says = |builder: DeferBuilder| builder.build().unwrap_err().to_string();
    assert!(says(payment().max_body(0)).starts_with("max_body = 0 is refused"));
    assert!(says(payment().max_body(MAX_BODY_BYTES + 1)).contains("must be from 1 to 196608"));
    assert!(says(payment().headers([header::COOKIE])).starts_with("headers = cookie is refused"));
    let many = (0..99).map(|n| format!("x-{n}").parse().unwrap());
    assert_eq!(
        says(payment().headers(many)),
        "headers = 33 is refused: must be at most 32"
    );
    assert!(says(DeferPolicy::builder("").rejections(true)).starts_with("kind = \"\""));
    assert!(says(payment().judge(Judge::default())).starts_with("judge = no refusals"));
    assert!(DeferPolicy::builder("mail").failures(true).build().is_ok());
}
