//! Descriptors from the server itself: gRPC server reflection, version 1, or the older v1alpha where that is all there is.

use std::collections::HashSet;

use bytes::Bytes;
use http::uri::PathAndQuery;
use mamparo_core::BoxError;
use prost_reflect::DescriptorPool;
use prost_reflect::prost::Message;
use prost_reflect::prost_types::FileDescriptorProto;
use tokio_stream::StreamExt;
use tonic::body::Body;
use tonic::client::{Grpc, GrpcService};
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest as Asked;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse as Told;
use tonic_reflection::pb::v1::{ErrorResponse, ServerReflectionRequest, ServerReflectionResponse};

use super::Schema;

/// The same messages, under two names.
const VERSIONS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// As many files, and as many bytes of them, are taken from a server.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: usize = 16 << 20;

/// Files import files, but not to a depth like this.
const MAX_ROUNDS: usize = 64;

/// Why a server could not be asked what it serves.
#[derive(Debug)]
pub(crate) enum Unreflected {
    /// It does not know reflection.
    Unsupported,
    /// It failed, or could not be reached.
    Failed(Box<Status>),
    /// What it told can't be used.
    Useless(String),
}

/// Asks a server for the descriptors of a service.
///
/// Where there is no such service, the schema knows the names of those that there are.
pub(crate) async fn reflect<S>(
    server: S,
    service: &str,
    metadata: &MetadataMap,
) -> Result<Schema, Unreflected>
where
    S: GrpcService<Body>,
    S::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<BoxError>,
{
    let mut server = Server {
        grpc: Grpc::new(server),
        version: VERSIONS[0],
        metadata,
    };
    server.schema(service).await
}

struct Server<'a, S> {
    grpc: Grpc<S>,
    version: &'static str,
    metadata: &'a MetadataMap,
}

impl<S> Server<'_, S>
where
    S: GrpcService<Body>,
    S::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<BoxError>,
{
    async fn schema(&mut self, service: &str) -> Result<Schema, Unreflected> {
        let found = match service {
            "" => None,
            symbol => self.files_of(symbol).await?,
        };
        match found {
            Some(files) => pool(files).map(Schema::new),
            None => Ok(Schema::of_names(self.services().await?)),
        }
    }

    /// The file that has a symbol, and all that it imports; none if no file has it.
    async fn files_of(&mut self, symbol: &str) -> Result<Option<Files>, Unreflected> {
        let mut files = Files::default();
        let mut asked = vec![Asked::FileContainingSymbol(symbol.to_owned())];
        for _ in 0..MAX_ROUNDS {
            let told = match self.ask(asked).await {
                // Some servers say so instead of telling it.
                Err(Unreflected::Failed(status)) if status.code() == Code::NotFound => {
                    return Ok(None);
                }
                told => told?,
            };
            for told in told {
                match told {
                    Told::FileDescriptorResponse(told) => files.take(told.file_descriptor_proto)?,
                    Told::ErrorResponse(error) if is_not_found(&error) => return Ok(None),
                    other => return Err(unexpected(&other)),
                }
            }
            let missing = files.missing();
            if missing.is_empty() {
                return Ok(Some(files));
            }
            asked = missing.into_iter().map(Asked::FileByFilename).collect();
        }
        Err(Unreflected::Useless(
            "its files import without end".to_owned(),
        ))
    }

    async fn services(&mut self) -> Result<Vec<String>, Unreflected> {
        let told = self.ask(vec![Asked::ListServices(String::new())]).await?;
        match told.into_iter().next() {
            Some(Told::ListServicesResponse(list)) => Ok(list
                .service
                .into_iter()
                .map(|service| service.name)
                .collect()),
            Some(other) => Err(unexpected(&other)),
            None => Err(Unreflected::Useless("it told nothing".to_owned())),
        }
    }

    /// Asks all of this at once, in the newest version that the server knows.
    async fn ask(&mut self, asked: Vec<Asked>) -> Result<Vec<Told>, Unreflected> {
        let told = self.ask_version(asked.clone()).await;
        match told {
            Err(status) if is_unsupported(&status) && self.version == VERSIONS[0] => {
                self.version = VERSIONS[1];
                self.ask_version(asked).await
            }
            told => told,
        }
        .map_err(|status| match is_unsupported(&status) {
            true => Unreflected::Unsupported,
            false => Unreflected::Failed(Box::new(status)),
        })
    }

    async fn ask_version(&mut self, asked: Vec<Asked>) -> Result<Vec<Told>, Status> {
        let count = asked.len();
        let questions = asked.into_iter().map(|asked| ServerReflectionRequest {
            host: String::new(),
            message_request: Some(asked),
        });
        let mut request = Request::new(tokio_stream::iter(questions.collect::<Vec<_>>()));
        *request.metadata_mut() = self.metadata.clone();
        let ready = self.grpc.ready().await;
        ready.map_err(|error| Status::from_error(error.into()))?;
        let path = PathAndQuery::from_static(self.version);
        let codec = ProstCodec::<ServerReflectionRequest, ServerReflectionResponse>::default();
        let answers = self
            .grpc
            .streaming(request, path, codec)
            .await?
            .into_inner();
        let mut answers = answers.take(count);
        let mut told = Vec::new();
        while let Some(answer) = answers.next().await {
            told.extend(answer?.message_response);
        }
        Ok(told)
    }
}

/// The files of a service, as far as they are there.
#[derive(Debug, Default)]
struct Files {
    all: Vec<FileDescriptorProto>,
    names: HashSet<String>,
    bytes: usize,
}

impl Files {
    fn take(&mut self, files: Vec<Vec<u8>>) -> Result<(), Unreflected> {
        for file in files {
            self.bytes += file.len();
            if self.bytes > MAX_BYTES || self.all.len() >= MAX_FILES {
                let why = format!("its descriptors are larger than {MAX_FILES} files or 16 MiB");
                return Err(Unreflected::Useless(why));
            }
            let file = FileDescriptorProto::decode(&*file)
                .map_err(|error| Unreflected::Useless(format!("no descriptor came: {error}")))?;
            if self.names.insert(file.name().to_owned()) {
                self.all.push(file);
            }
        }
        Ok(())
    }

    fn missing(&self) -> Vec<String> {
        let imports = self.all.iter().flat_map(|file| &file.dependency);
        let missing: HashSet<_> = imports.filter(|name| !self.names.contains(*name)).collect();
        missing.into_iter().cloned().collect()
    }
}

fn pool(files: Files) -> Result<DescriptorPool, Unreflected> {
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_protos(files.all)
        .map_err(|error| Unreflected::Useless(error.to_string()))?;
    Ok(pool)
}

/// A server that knows neither reflection nor even gRPC says the same.
fn is_unsupported(status: &Status) -> bool {
    status.code() == Code::Unimplemented && std::error::Error::source(status).is_none()
}

fn is_not_found(error: &ErrorResponse) -> bool {
    Code::from(error.error_code) == Code::NotFound
}

fn unexpected(told: &Told) -> Unreflected {
    Unreflected::Useless(match told {
        Told::ErrorResponse(error) => format!("it says {}", error.error_message),
        _ => "it told something else than it was asked".to_owned(),
    })
}
