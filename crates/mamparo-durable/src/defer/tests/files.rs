//! Settings from a policy file.

use http::StatusCode;
use mamparo::policy::{Format, Policies};

use crate::defer::DeferPolicy;
use crate::machine::Outcome;

#[test]
fn a_layer_defers_what_its_dependency_s_table_says() {
    let document = r#"
[dependency.psp]
defer = { field = "status", refused_values = ["CANCELLED"], failures = true }
[dependency.bank]
defer = { rejections = true }
[dependency.mail]
"#;
    let loader = Policies::loader().text("policies.toml", document, Format::Toml);
    let files = loader.load().unwrap();
    let of = |name: &str| DeferPolicy::of_file(&files.dependency(name).unwrap());
    let psp = of("psp").unwrap();
    assert_eq!(psp.kind.as_str(), "psp");
    let cancelled = psp
        .judge
        .judge(StatusCode::OK, br#"{"status":"CANCELLED"}"#);
    assert_eq!(cancelled.0, Outcome::Refused);
    let later = |name: &str| {
        let later = of(name).unwrap().later;
        (later.rejections, later.failures)
    };
    assert_eq!(later("psp"), (false, true));
    assert_eq!(later("bank"), (true, false));
    assert!(of("bank").unwrap().build().is_ok());
    let off = of("mail").unwrap_err().to_string();
    let says = "dependency.mail.defer: defer = off is refused: must be on: it says which answers are deferred";
    assert!(
        off.starts_with("policies.toml") && off.ends_with(says),
        "{off}"
    );
}
