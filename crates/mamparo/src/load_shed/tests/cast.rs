//! What the tests of load shedding share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mamparo_core::{BoxError, Event, Observer, Plain, Reason, Rejection, What};

use super::super::{LoadShedBuilder, LoadShedLayer, LoadShedPolicy};

pub(super) const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub(super) fn policy() -> LoadShedBuilder {
    LoadShedPolicy::builder()
}

pub(super) fn shed(policy: LoadShedBuilder) -> LoadShedLayer<Plain> {
    LoadShedLayer::new(policy.build().unwrap(), Plain::idempotent()).dependency("jobs")
}

/// Asserts that the call was shed, and never sent.
pub(super) fn assert_shed<T>(result: Result<T, BoxError>) {
    let Err(error) = result else {
        panic!("it was not shed");
    };
    let rejection = Rejection::of(&*error).expect("a rejection");
    assert_eq!(
        (
            rejection.reason(),
            rejection.sent(),
            rejection.retry_after()
        ),
        (Reason::Overloaded, false, Some(Duration::from_secs(1)))
    );
}

/// A rule by which a call was shed, and the call's priority.
type Shed = (&'static str, Option<&'static str>);

/// Hears by which rules calls were shed.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules(Arc<Mutex<Vec<Shed>>>);

impl Observer for Rules {
    fn on(&self, event: &Event<'_>) {
        if let What::Shed { by, priority } = event.what {
            self.0.lock().unwrap().push((by.as_str(), priority));
        }
    }
}

impl Rules {
    pub(super) fn heard(&self) -> Vec<Shed> {
        self.0.lock().unwrap().clone()
    }
}
