//! One test a trouble.

use std::time::Duration;

use mamparo_testkit::proxy::Fault;
use mamparo_testkit::server::Reply;

use super::rig::{ATTEMPT, DEADLINE, LINE, PLACES, Report, Rig, SLACK};

/// Operations under each trouble, and how many of them at once.
const OPERATIONS: usize = 80;
const AT_ONCE: usize = 4;

const BODY: usize = 20_000;

async fn rig() -> Rig {
    Rig::start(
        Reply::ok()
            .body(vec![b'x'; BODY])
            .delay(Duration::from_millis(2)),
    )
    .await
}

/// Lets operations run while a fault is on, asserts what must hold, and that all is well once it is off.
async fn under(rig: &Rig, fault: Fault) -> Report {
    assert_eq!(rig.run(AT_ONCE, AT_ONCE).await.answered, AT_ONCE);
    rig.proxy.set(fault).await;
    let report = rig.run(OPERATIONS, AT_ONCE).await;
    rig.assert_kept(&report).await;
    rig.proxy.set(Fault::None).await;
    rig.assert_recovers().await;
    report
}

/// Asserts that nothing was answered, and little asked.
fn assert_spared(report: &Report) {
    assert_eq!(report.answered, 0, "{report:?}");
    assert!(2 * report.sends < report.operations, "{report:?}");
}

#[tokio::test]
async fn under_normal_load_every_operation_is_sent_once_and_answered() {
    let rig = rig().await;
    let report = rig.run(OPERATIONS, AT_ONCE).await;
    rig.assert_kept(&report).await;
    assert_eq!(
        (report.answered, report.sends),
        (OPERATIONS, OPERATIONS),
        "{report:?}"
    );
}

#[tokio::test]
async fn near_the_limit_operations_wait_for_their_turn_and_all_are_answered() {
    let (rig, work) = Rig::before_work(Duration::from_millis(5)).await;
    let report = rig.run(OPERATIONS, PLACES + LINE).await;
    rig.assert_kept(&report).await;
    assert_eq!(
        (report.answered, report.sends),
        (OPERATIONS, OPERATIONS),
        "{report:?}"
    );
    assert!(work.most() <= PLACES, "{work:?}");
}

/// Slow answers hold all places: what would wait too long is refused at once, and not sent.
#[tokio::test]
async fn before_a_saturated_pool_operations_are_refused_and_not_sent() {
    let (rig, work) = Rig::before_work(ATTEMPT / 2).await;
    let report = rig.run(OPERATIONS, 4 * PLACES).await;
    rig.assert_kept(&report).await;
    assert!(
        report.answered >= PLACES && work.most() <= PLACES,
        "{report:?} {work:?}"
    );
    assert_eq!(report.sends, report.answered, "{report:?}");
    assert!(report.sends < OPERATIONS, "{report:?}");
    rig.assert_recovers().await;
}

#[tokio::test]
async fn under_induced_latency_the_dependency_is_given_a_rest() {
    let rig = rig().await;
    assert_spared(&under(&rig, Fault::Latency(ATTEMPT)).await);
}

#[tokio::test]
async fn of_a_few_resets_nobody_hears_and_under_many_the_dependency_is_given_a_rest() {
    let rig = rig().await;
    rig.proxy.set_for(0.1, Fault::ResetAfter(0)).await;
    let report = rig.run(OPERATIONS, AT_ONCE).await;
    rig.assert_kept(&report).await;
    assert!(report.answered + 4 >= OPERATIONS, "{report:?}");
    rig.proxy.set(Fault::None).await;
    assert_spared(&under(&rig, Fault::ResetAfter(0)).await);
}

#[tokio::test]
async fn a_body_that_ends_early_is_a_failure_and_the_dependency_is_given_a_rest() {
    let rig = rig().await;
    assert_spared(&under(&rig, Fault::TruncateAfter(1_000)).await);
}

/// Row D5: its attempt's timeout lets it come, and the deadline ends it.
#[tokio::test]
async fn a_body_that_trickles_is_cut_at_the_deadline_and_the_dependency_is_given_a_rest() {
    let rig = rig().await;
    let report = under(&rig, Fault::Bandwidth(5_000)).await;
    assert_spared(&report);
    assert!(report.longest + SLACK >= DEADLINE, "{report:?}");
}

#[tokio::test]
async fn a_port_that_refuses_is_left_alone() {
    // Each answer is the last of its connection: a pooled one would still be open.
    let rig = Rig::start(Reply::ok().last()).await;
    assert_spared(&under(&rig, Fault::Refuse).await);
}

#[tokio::test]
async fn an_address_that_is_silent_is_left_alone() {
    let rig = rig().await;
    assert_spared(&under(&rig, Fault::BlackHole).await);
}
