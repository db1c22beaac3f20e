//! Settings from policy files.

use std::time::Duration;

use http::StatusCode;
use mamparo::policy::{Format, Policies as Files};

use super::Policies;
use crate::machine::Outcome;
use crate::web::Judge;

const MINUTE: Duration = Duration::from_secs(60);

fn files(document: &str) -> Files {
    let loader = Files::loader().text("policies.toml", document, Format::Toml);
    loader.load().unwrap()
}

#[test]
fn a_dependency_s_table_holds_for_the_transactions_of_its_name() {
    let files = files(
        r#"
[dependency.psp.defer]
refused = [409]
max_attempts = 6
max_postponements = 7
give_up_after = "1d"
wait = { base = "30m", jitter = 0.0 }
technical_wait = { cap = "10s" }
[dependency.mail]
"#,
    );
    let policies = Policies::of_files(&files).unwrap();
    let psp = policies.pick("psp", None, None);
    let limits = (psp.max_attempts(), psp.max_postponements());
    assert_eq!(limits, (6, 7));
    assert_eq!(psp.give_up_after(), 24 * 60 * MINUTE);
    assert_eq!(psp.business().after(1, 1.0, 1.0), 30 * MINUTE);
    let technical = (psp.technical().base(), psp.technical().cap());
    let capped = Duration::from_secs(10);
    assert_eq!(
        technical,
        (capped, capped),
        "the base that nobody wrote gives way"
    );
    assert_eq!(policies.pick("mail", None, None).max_attempts(), 4);

    let judged = |name: &str| {
        let judge = Judge::of_file(&files.dependency(name).unwrap()).unwrap();
        judge.judge(StatusCode::CONFLICT, b"").0
    };
    assert_eq!(judged("psp"), Outcome::Refused);
    assert_eq!(judged("mail"), Outcome::Declined);
}
