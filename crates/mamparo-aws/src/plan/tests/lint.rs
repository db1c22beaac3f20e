use std::process::Command;

use mamparo_testkit::private::PrivateMoto;

use crate::plan::Plan;

/// Every rule but those that only inform, among them which actions and ARNs IAM knows.
const LINT: &str = "\
import sys
from cfnlint.runner import main
sys.argv = ['cfn-lint', '--regions', 'us-east-1', '--', sys.argv[1]]
sys.exit(main())";

#[tokio::test]
async fn the_templates_pass_the_linter_of_cloudformation() {
    let plain = Plan::new("mamparo").unwrap();
    let key = "arn:aws:kms:us-east-1:123456789012:key/1";
    let encrypted = plain.clone().encrypted_with(key).unwrap();
    let python = PrivateMoto::shared().await.python();
    for (name, plan) in [("plain", plain), ("encrypted", encrypted)] {
        let file = std::env::temp_dir().join(format!("mamparo-{}-{name}.json", std::process::id()));
        std::fs::write(&file, plan.cloudformation()).unwrap();
        let linted = Command::new(python)
            .args(["-c", LINT])
            .arg(&file)
            .output()
            .unwrap();
        std::fs::remove_file(&file).unwrap();
        let said = String::from_utf8_lossy(&linted.stdout);
        assert!(
            linted.status.success(),
            "{name}: {said}{}",
            String::from_utf8_lossy(&linted.stderr)
        );
    }
}
