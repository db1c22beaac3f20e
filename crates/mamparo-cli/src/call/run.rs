//! Making the call.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use mamparo::fallback::{self, FallbackPolicy};
use mamparo_core::{BoxError, InvalidSetting};
use tower::ServiceExt;

use super::body::CallBody;
use super::deliver::deliver;
use super::ending::{Came, Ended, judge};
use super::record::Record;
use super::report::report;
use super::settings::{Form, Refused, Settings};
use crate::args::CallArgs;
use crate::exit::Exit;
use crate::output;
use crate::telemetry::Pipeline;
use crate::trace::Kept;

/// What a server is told that calls it, unless a header says otherwise.
const USER_AGENT: &str = concat!("mamparo/", env!("CARGO_PKG_VERSION"));

/// What marks the head of an answer that is not the server's.
const FALLBACK: HeaderName = HeaderName::from_static("x-fallback");

/// Makes the call that was typed, and says what became of it.
pub(crate) async fn call(args: CallArgs) -> Exit {
    let prepared = async {
        let settings = Settings::new(&args)?;
        let telemetry = Pipeline::new("mamparo", args.otlp)
            .map_err(|error| Refused(format!("--otlp can't be used: {error}")))?;
        Ok((settings, CallBody::open(args.data).await?, telemetry))
    };
    match prepared.await {
        Ok((settings, body, telemetry)) => carry_out(&settings, body, &telemetry).await,
        Err(Refused(why)) => {
            output::error(&why);
            Exit::Usage
        }
    }
}

async fn carry_out(settings: &Settings, body: CallBody, telemetry: &Pipeline) -> Exit {
    let came = send(settings, body, telemetry).await;
    let kept = telemetry.kept();
    let dependency = settings.stack.dependency();
    let seen = kept
        .roots()
        .first()
        .map_or(0, |root| kept.attempts(root).len());
    let seen = u32::try_from(seen).unwrap_or(u32::MAX);
    let ended = judge(&came, dependency, seen, settings.safe);
    let exit = match settings.output {
        Form::Json => write_json(settings, &kept, &came, &ended),
        Form::Body | Form::HeadAndBody => {
            report(&kept, dependency, &came, &ended);
            ended.exit
        }
    };
    if let (_, Err(why)) = telemetry.finish().await {
        output::warning(&why);
    }
    exit
}

/// Sends the request through the stack, and takes the answer in to its end.
async fn send(settings: &Settings, body: CallBody, telemetry: &Pipeline) -> Came {
    let dependency = settings.stack.dependency();
    let (operation, attempt) = telemetry.layers(dependency);
    let observer = telemetry.observer(dependency, settings.stack.budget());
    let stack = settings.stack.clone().observer(observer);
    let stack = stack.telemetry(operation, attempt);
    let builder = reqwest::Client::builder().user_agent(USER_AGENT);
    let mut request = Request::new(body);
    *request.method_mut() = settings.method.clone();
    *request.uri_mut() = settings.uri.clone();
    *request.headers_mut() = settings.headers.clone();
    let Some(instead) = &settings.fallback else {
        let client = mamparo::client::reqwest(builder, &stack)?;
        let response = client.oneshot(request).await?;
        return Ok(deliver(response, settings.output).await);
    };
    let stack = stack.fallback(marked()?, fallback::value(answer(instead)));
    let client = mamparo::client::reqwest(builder, &stack)?;
    let response = client.oneshot(request).await?;
    Ok(deliver(response, settings.output).await)
}

fn marked() -> Result<FallbackPolicy, InvalidSetting> {
    let yes = HeaderValue::from_static("true");
    let policy = FallbackPolicy::builder().header(FALLBACK, yes);
    policy.build()
}

fn answer(body: &Bytes) -> Response<Full<Bytes>> {
    Response::new(Full::from(body.clone()))
}

fn write_json(settings: &Settings, kept: &Kept, came: &Came, ended: &Ended) -> Exit {
    let record = Record::new(settings, kept, came, ended);
    let written = serde_json::to_vec_pretty(&record)
        .map_err(BoxError::from)
        .and_then(|mut json| {
            json.push(b'\n');
            Ok(output::all(&json)?)
        });
    match written {
        Ok(()) => ended.exit,
        Err(error) => {
            output::error(&format!(
                "the record could not be written to stdout: {error}"
            ));
            Exit::Unwritten
        }
    }
}
