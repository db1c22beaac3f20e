//! What is done before a call: learning what its messages look like, and reading the one to send.

use std::error::Error;

use mamparo_core::grpc::Code;
use prost_reflect::{DynamicMessage, MethodDescriptor};
use tokio::io::{AsyncRead, AsyncReadExt};
use tonic::Status;

use super::settings::Settings;
use crate::args::Data;
use crate::call::about::Refused;
use crate::call::deliver::MAX_KEPT;
use crate::call::ending::{causes, of_error, one_line};
use crate::exit::Exit;
use crate::grpc::{Schema, Unreflected, compile, from_json, reflect};

/// A method, and the message that it is sent.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) method: MethodDescriptor,
    pub(super) message: DynamicMessage,
}

/// Why there is no call: the exit code, and the line that says it.
#[derive(Debug)]
pub(super) struct Stopped(pub(super) Exit, pub(super) String);

/// Prepares a call.
pub(super) async fn prepare(settings: &Settings, data: Option<Data>) -> Result<Prepared, Stopped> {
    let json = read(data).await?;
    let schema = schema(settings).await?;
    let dependency = settings.about.dependency;
    let method = schema
        .method(&settings.address)
        .map_err(|why| Refused(format!("{dependency}: {why}")))?;
    let input = method.input();
    let message = match json.as_deref() {
        None => DynamicMessage::new(input),
        Some(json) => from_json(&input, json)
            .map_err(|why| Refused(format!("--data is no {}: {why}", input.full_name())))?,
    };
    Ok(Prepared { method, message })
}

async fn schema(settings: &Settings) -> Result<Schema, Stopped> {
    if let Some((file, folders)) = &settings.proto {
        return Ok(compile(file, folders).map_err(|why| Refused(format!("--proto: {why}")))?);
    }
    let server = mamparo::client::tonic(settings.channel.clone(), &settings.asking);
    let told = reflect(server, &settings.address.service, &settings.metadata).await;
    told.map_err(|why| unreflected(settings, why))
}

fn unreflected(settings: &Settings, why: Unreflected) -> Stopped {
    let dependency = settings.about.dependency;
    let asked = format!("{dependency}: could not be asked what it serves");
    match why {
        Unreflected::Unsupported => Stopped(
            Exit::Usage,
            format!(
                "{dependency}: has no server reflection: describe the service with --proto FILE"
            ),
        ),
        Unreflected::Failed(status) => match status.source() {
            Some(error) => Stopped(
                of_error(error),
                format!("{asked}: {}", causes(error, dependency)),
            ),
            None => Stopped(
                Exit::FailedAnswer,
                format!(
                    "{asked}: {}: --proto FILE needs no reflection",
                    said(&status)
                ),
            ),
        },
        Unreflected::Useless(why) => Stopped(
            Exit::FailedAnswer,
            format!(
                "{asked}: {}: --proto FILE needs no reflection",
                one_line(&why)
            ),
        ),
    }
}

/// A server's status, on one line.
fn said(status: &Status) -> String {
    let code = Code::from_number(status.code().into()).as_str();
    match one_line(status.message()) {
        message if message.is_empty() => code.to_owned(),
        message => format!("{code} \"{message}\""),
    }
}

/// Reads the message's JSON.
async fn read(data: Option<Data>) -> Result<Option<Vec<u8>>, Refused> {
    Ok(Some(match data {
        None => return Ok(None),
        Some(Data::Text(text)) => text.to_vec(),
        Some(Data::Stdin) => read_all(tokio::io::stdin(), "stdin").await?,
        Some(Data::File(path)) => {
            let name = path.display().to_string();
            let file = tokio::fs::File::open(&path).await;
            let file = file.map_err(|error| Refused(format!("{name} can't be read: {error}")))?;
            read_all(file, &name).await?
        }
    }))
}

async fn read_all(source: impl AsyncRead + Unpin, name: &str) -> Result<Vec<u8>, Refused> {
    let mut all = Vec::new();
    let mut source = source.take(MAX_KEPT as u64 + 1);
    let read = source.read_to_end(&mut all).await;
    read.map_err(|error| Refused(format!("{name} can't be read: {error}")))?;
    if all.len() > MAX_KEPT {
        return Err(Refused(format!("{name} is larger than 16 MiB")));
    }
    Ok(all)
}

impl From<Refused> for Stopped {
    fn from(Refused(why): Refused) -> Self {
        Self(Exit::Usage, why)
    }
}
