//! Making a call of gRPC.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use http::Response;
use mamparo_core::Ending;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::{Request, Status};
use tower::ServiceExt;

use super::prepare::{Prepared, Stopped, prepare};
use super::reply::Reply;
use super::settings::Settings;
use crate::args::CallArgs;
use crate::call::about::Form;
use crate::call::deliver::MAX_KEPT;
use crate::call::ending::Came;
use crate::call::finish::{finish, telemetry};
use crate::exit::Exit;
use crate::grpc::DynamicCodec;
use crate::output;
use crate::telemetry::Pipeline;

/// Makes the call that was typed, and says what became of it.
pub(in crate::call) async fn call(mut args: CallArgs) -> Exit {
    let data = args.data.take();
    let prepared = async {
        let settings = Settings::new(&args)?;
        let telemetry = telemetry(&args)?;
        Ok((prepare(&settings, data).await?, settings, telemetry))
    };
    match prepared.await {
        Ok((prepared, mut settings, telemetry)) => {
            settings.about.safe = settings.plan.is_idempotent(&prepared.method);
            let mut came = send(&settings, prepared, &telemetry).await;
            if let (Ok(reply), Form::Body | Form::HeadAndBody) = (&mut came, settings.about.output)
            {
                reply.write(settings.about.output).await;
            }
            finish(&settings.about, came, &telemetry).await
        }
        Err(Stopped(exit, why)) => {
            output::error(&why);
            exit
        }
    }
}

/// Sends the message through the stack, and takes the answer in to its end.
async fn send(settings: &Settings, prepared: Prepared, telemetry: &Pipeline) -> Came<Reply> {
    let Prepared { method, message } = prepared;
    let dependency = settings.about.dependency;
    let observer = telemetry.observer(dependency, settings.stack.budget());
    let (operation, attempt) = telemetry.rpc_layers(dependency);
    let stack = settings.plan.apply(settings.stack.clone(), &method)?;
    let stack = stack.observer(observer);
    let stack = stack.telemetry(operation, attempt);
    let client = mamparo::client::tonic(settings.channel.clone(), &stack);
    // A status that a generated client makes of an answer has not kept what the answer was marked with.
    let ending = Arc::<Mutex<Option<Ending>>>::default();
    let noted = Arc::clone(&ending);
    let note = move |response: Response<_>| {
        *noted.lock().unwrap_or_else(PoisonError::into_inner) = Ending::of(&response).copied();
        response
    };
    let service = ServiceExt::<http::Request<Body>>::map_response(client, note);
    let mut client = Grpc::with_origin(service, settings.address.origin.clone())
        .max_decoding_message_size(MAX_KEPT);
    let mut request = Request::new(message);
    *request.metadata_mut() = settings.metadata.clone();
    let answer = async {
        let ready = client.ready().await;
        ready.map_err(Status::from_error)?;
        let codec = DynamicCodec::new(method.output());
        let path = settings.address.path();
        let path = path.map_err(Status::invalid_argument)?;
        client.unary(request, path, codec).await
    };
    let answer = answer.await;
    let ending = *ending.lock().unwrap_or_else(PoisonError::into_inner);
    match answer {
        Ok(response) => Ok(Reply::new(response, ending)),
        // What has a cause was made on this side.
        Err(status) if status.source().is_some() => Err(status.into()),
        Err(status) => Ok(Reply::failed(&status, ending)),
    }
}
