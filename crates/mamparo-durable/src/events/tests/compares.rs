use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::BoxError;
use proptest::prelude::*;

use super::super::{Discrepancy, Entry, Reconciliation};
use crate::supervise::Supervisor;

/// A source that gives pages of two, whatever is asked.
fn source(
    entries: BTreeMap<String, String>,
) -> impl Fn(Option<String>, usize) -> std::future::Ready<Result<Vec<Entry>, BoxError>>
+ Send
+ Sync
+ 'static {
    let entries = Arc::new(entries);
    move |after, _| {
        let after = entries
            .iter()
            .filter(|(key, _)| Some(*key) > after.as_ref());
        let page = after.take(2).map(|(key, value)| Entry::new(key, value));
        std::future::ready(Ok(page.collect()))
    }
}

fn compare(left: BTreeMap<String, String>, right: BTreeMap<String, String>) -> Vec<Discrepancy> {
    let reconciliation = Reconciliation::builder("r", source(left), source(right));
    let compared = async { reconciliation.build().unwrap().compare().await };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(compared).unwrap()
}

proptest! {
    #[test]
    fn every_discrepancy_is_found_and_nothing_else(
        left in prop::collection::btree_map("[a-c]{1,2}", "[xy]", 0..9),
        right in prop::collection::btree_map("[a-c]{1,2}", "[xy]", 0..9),
    ) {
        let found: BTreeMap<String, (Option<String>, Option<String>)> = compare(left.clone(), right.clone())
            .into_iter()
            .map(|discrepancy| (discrepancy.key, (discrepancy.left, discrepancy.right)))
            .collect();
        let keys = left.keys().chain(right.keys());
        let expected = keys
            .map(|key| (key.clone(), (left.get(key).cloned(), right.get(key).cloned())))
            .filter(|(_, (left, right))| left != right)
            .collect();
        prop_assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn a_source_out_of_order_is_an_error_and_not_a_heap_of_discrepancies() {
    let wrong = |_: Option<String>, _: usize| async {
        Ok::<_, BoxError>(vec![Entry::new("b", ""), Entry::new("a", "")])
    };
    let reconciliation = Reconciliation::builder("r", source(BTreeMap::new()), wrong);
    let error = reconciliation.build().unwrap().compare().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the right source can't be read: the key a does not come after the one before it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reconciliation_that_stops_does_not_wait_for_its_sources() {
    let silent = |_: Option<String>, _: usize| std::future::pending();
    let reconciliation = Reconciliation::builder("r", source(BTreeMap::new()), silent);
    let running = Supervisor::new().worker(reconciliation.build().unwrap());
    let running = running.run();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let stopped = tokio::time::timeout(Duration::from_secs(1), running.stop());
    stopped.await.unwrap().unwrap();
}
