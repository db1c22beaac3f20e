//! The policies' breakers, asked before an attempt is claimed.

use std::collections::HashMap;

use mamparo::breaker::BreakerHandle;
use mamparo::policy::Policies;
use mamparo_core::breaker::BreakerState;
use mamparo_core::clock::SystemClock;
use mamparo_durable::handler::Gatekeeper;
use mamparo_durable::machine::{Gate, Terms, Utc};

/// The breakers of all dependencies.
#[derive(Debug)]
pub(super) struct Breakers {
    by_dependency: HashMap<String, Vec<BreakerHandle>>,
}

impl Breakers {
    pub(super) fn of(policies: &Policies) -> Self {
        let breakers = policies.iter().filter_map(|(name, policy)| {
            let stack = policy.http().ok()?;
            let handles = [stack.breaker_handle(), stack.operation_breaker_handle()];
            Some((name.to_owned(), handles.into_iter().flatten().collect()))
        });
        Self {
            by_dependency: breakers.collect(),
        }
    }
}

impl Gatekeeper for Breakers {
    fn gate(&self, terms: &Terms) -> Gate {
        let dependency = terms.dependency.as_ref().map(|name| name.as_str());
        let breakers = dependency.and_then(|name| self.by_dependency.get(name));
        breakers
            .into_iter()
            .flatten()
            .map(ask)
            .find(|gate| *gate != Gate::Pass)
            .unwrap_or(Gate::Pass)
    }
}

fn ask(breaker: &BreakerHandle) -> Gate {
    let snapshot = breaker.snapshot();
    let wait = snapshot.retry_after.filter(|wait| !wait.is_zero());
    match (snapshot.state, wait) {
        (BreakerState::Open, Some(wait)) => {
            let until = Utc::of(&SystemClock).plus(wait);
            Gate::Postpone { until: Some(until) }
        }
        // Half-open with a wait, it has let all probes pass that it lets; nobody knows how long they take.
        (BreakerState::ForcedOpen, _) | (BreakerState::HalfOpen, Some(_)) => {
            Gate::Postpone { until: None }
        }
        // One whose wait is over lets a probe pass.
        _ => Gate::Pass,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http::{Request, Response, StatusCode};
    use mamparo::policy::Format;
    use mamparo::replay::ReplayBody;
    use mamparo_durable::machine::TransactionId;
    use mamparo_durable::policy::Policy;
    use tokio::sync::mpsc;
    use tower::{Layer as _, ServiceExt as _, service_fn};

    use super::*;

    const POLICY: &str = r#"
[dependency.psp]
retry = "off"
breaker = { consecutive_failures = 1, open_wait = "50ms", probes = 1 }
"#;

    fn terms() -> Terms {
        let id = TransactionId::new("p").unwrap();
        let mut terms = Terms::new(id, "psp", &Policy::default(), Utc::of(&SystemClock));
        terms.dependency = Some("psp".into());
        terms
    }

    async fn fails(request: Request<ReplayBody<String>>) -> Result<Response<String>, Infallible> {
        if request.uri() == "/slow" {
            std::future::pending::<()>().await;
        }
        let mut answer = Response::new(String::new());
        *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        Ok(answer)
    }

    /// Whoever fires while the one probe is under way would only be refused.
    #[tokio::test]
    async fn a_half_open_breaker_lets_pass_until_its_probes_are_taken() {
        let loader = Policies::loader().text("policies.toml", POLICY, Format::Toml);
        let files = loader.load().unwrap();
        let (breakers, terms) = (Breakers::of(&files), terms());
        let stack = files.dependency("psp").unwrap().http().unwrap();
        let (begins, mut begun) = mpsc::unbounded_channel();
        let psp = stack.layer(service_fn(move |request: Request<ReplayBody<String>>| {
            begins.send(()).unwrap();
            fails(request)
        }));
        let get = |path: &str| Request::get(path).body(String::new()).unwrap();
        assert_eq!(breakers.gate(&terms), Gate::Pass);
        drop(psp.clone().oneshot(get("/")).await);
        begun.recv().await.unwrap();
        let open = breakers.gate(&terms);
        assert!(
            matches!(open, Gate::Postpone { until: Some(_) }),
            "{open:?}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(breakers.gate(&terms), Gate::Pass);
        let probe = tokio::spawn(psp.clone().oneshot(get("/slow")));
        begun.recv().await.unwrap();
        assert_eq!(breakers.gate(&terms), Gate::Postpone { until: None });
        probe.abort();
        assert!(probe.await.is_err());
        assert_eq!(breakers.gate(&terms), Gate::Pass);
    }
}
