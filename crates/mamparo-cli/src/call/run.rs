//! Making a call of HTTP.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use mamparo::fallback::{self, FallbackPolicy};
use mamparo_core::InvalidSetting;
use tower::ServiceExt;

use super::about::{About, Refused};
use super::body::CallBody;
use super::deliver::{Answer, deliver};
use super::ending::Came;
use super::finish::{finish, telemetry};
use super::rpc;
use super::settings::Settings;
use crate::args::CallArgs;
use crate::exit::Exit;
use crate::output;
use crate::telemetry::Pipeline;

/// What marks the head of an answer that is not the server's.
const FALLBACK: HeaderName = HeaderName::from_static("x-fallback");

/// Makes the call that was typed, and says what became of it.
pub(crate) async fn call(args: CallArgs) -> Exit {
    if args.grpc {
        return rpc::call(args).await;
    }
    let prepared = async {
        let settings = Settings::new(&args)?;
        let telemetry = telemetry(&args)?;
        Ok((settings, CallBody::open(args.data).await?, telemetry))
    };
    match prepared.await {
        Ok((settings, body, telemetry)) => {
            let came = send(&settings, body, &telemetry).await;
            finish(&settings.about, came, &telemetry).await
        }
        Err(Refused(why)) => {
            output::error(&why);
            Exit::Usage
        }
    }
}

/// Sends the request through the stack, and takes the answer in to its end.
async fn send(settings: &Settings, body: CallBody, telemetry: &Pipeline) -> Came<Answer> {
    let About {
        dependency, output, ..
    } = settings.about;
    let (operation, attempt) = telemetry.layers(dependency);
    let observer = telemetry.observer(dependency, settings.stack.budget());
    let stack = settings.stack.clone().observer(observer);
    let stack = stack.telemetry(operation, attempt);
    let builder = reqwest::Client::builder().user_agent(crate::USER_AGENT);
    let mut request = Request::new(body);
    *request.method_mut() = settings.method.clone();
    *request.uri_mut() = settings.uri.clone();
    *request.headers_mut() = settings.headers.clone();
    let Some(instead) = &settings.fallback else {
        let client = mamparo::client::reqwest(builder, &stack)?;
        let response = client.oneshot(request).await?;
        return Ok(deliver(response, output).await);
    };
    let stack = stack.fallback(marked()?, fallback::value(answer(instead)));
    let client = mamparo::client::reqwest(builder, &stack)?;
    let response = client.oneshot(request).await?;
    Ok(deliver(response, output).await)
}

fn marked() -> Result<FallbackPolicy, InvalidSetting> {
    let yes = HeaderValue::from_static("true");
    let policy = FallbackPolicy::builder().header(FALLBACK, yes);
    policy.build()
}

fn answer(body: &Bytes) -> Response<Full<Bytes>> {
    Response::new(Full::from(body.clone()))
}
