//! What the tests of a stack share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Request, Response};
use mamparo_core::{BoxError, CallContext, Event, Observer, Reason, Rejection, What};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, Service, ServiceExt};

use crate::replay::ReplayBody;

pub(super) type Wire = Request<ReplayBody<ScriptedBody>>;
pub(super) type Answered = Response<ScriptedBody>;
pub(super) type Peer = Script<Wire, Answered, (HeaderMap, CallContext)>;

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn peer(steps: impl IntoIterator<Item = Step<Answered>>) -> Peer {
    Script::noting(
        |request: &Wire| (request.headers().clone(), CallContext::current()),
        steps,
    )
}

pub(super) fn answer(status: u16) -> Step<Answered> {
    Step::answer(
        Response::builder()
            .status(status)
            .body(ScriptedBody::empty())
            .unwrap(),
    )
}

pub(super) fn post() -> Request<ScriptedBody> {
    Request::post("http://psp/charges")
        .body(ScriptedBody::new("1 EUR"))
        .unwrap()
}

pub(super) fn get() -> Request<ScriptedBody> {
    Request::get("http://psp/charges")
        .body(ScriptedBody::empty())
        .unwrap()
}

/// What came of one call: the status, or why we refused it.
pub(super) async fn call<L, B>(stack: &L, peer: &Peer) -> Result<u16, Reason>
where
    L: Layer<Peer>,
    L::Service: Service<Request<ScriptedBody>, Response = Response<B>, Error = BoxError>,
{
    match stack.layer(peer.clone()).oneshot(get()).await {
        Ok(answer) => Ok(answer.status().as_u16()),
        Err(error) => Err(Rejection::of(&*error).expect("a rejection").reason()),
    }
}

/// Writes down what happens, in order.
#[derive(Debug, Default)]
pub(super) struct Heard(Mutex<Vec<String>>);

impl Heard {
    pub(super) fn take(self: &Arc<Self>) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        let what = match &event.what {
            What::Rejected(rejection) => format!("{:?}", rejection.reason()),
            What::AttemptEnded { .. } => format!("attempt {} ended", event.context.attempt()),
            What::OperationEnded { attempts, .. } => format!("operation ended after {attempts}"),
            other => {
                let name = format!("{other:?}");
                name.split([' ', '(']).next().unwrap_or_default().to_owned()
            }
        };
        self.0.lock().unwrap().push(what);
    }
}
