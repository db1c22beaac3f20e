//! What came back of a gRPC call.

use std::collections::BTreeMap;
use std::fmt::Write;

use http::HeaderMap;
use mamparo::fallback::Failed;
use mamparo_core::grpc::{Code, GRPC_MESSAGE, GRPC_STATUS};
use mamparo_core::{Dependency, Ending};
use prost_reflect::DynamicMessage;
use serde::Serialize;
use serde_json::Value;
use tonic::{Response, Status};

use crate::call::about::{Answered, Form};
use crate::call::ending::one_line;
use crate::call::record::headers;
use crate::exit::Exit;
use crate::grpc::to_json;
use crate::output;

/// A status, and the message that came with it if that is OK.
#[derive(Debug)]
pub(super) struct Reply {
    code: Code,
    said: String,
    metadata: HeaderMap,
    message: Option<Value>,
    ending: Option<Ending>,
    /// Why it could not be written.
    unwritten: Option<String>,
}

/// What is written of it into the record.
#[derive(Debug, Serialize)]
pub(super) struct Written {
    grpc_status: &'static str,
    grpc_code: u8,
    grpc_message: String,
    metadata: BTreeMap<String, Vec<String>>,
    message: Option<Value>,
}

impl Reply {
    pub(super) fn new(response: Response<DynamicMessage>, ending: Option<Ending>) -> Self {
        let (metadata, message, _) = response.into_parts();
        let mut reply = Self {
            code: Code::Ok,
            said: String::new(),
            metadata: own(metadata.into_headers()),
            message: None,
            ending,
            unwritten: None,
        };
        match to_json(&message) {
            Ok(json) => reply.message = Some(json),
            Err(why) => {
                let why = format!("the answer has no form as JSON: {}", one_line(&why));
                reply.unwritten = Some(why);
            }
        }
        reply
    }

    /// Takes a status that the server sent.
    pub(super) fn failed(status: &Status, ending: Option<Ending>) -> Self {
        Self {
            code: Code::from_number(status.code().into()),
            said: one_line(status.message()),
            metadata: own(status.metadata().clone().into_headers()),
            message: None,
            ending,
            unwritten: None,
        }
    }

    /// Writes it to stdout.
    pub(super) async fn write(&mut self, form: Form) {
        let mut text = String::new();
        if form == Form::HeadAndBody {
            text += &self.head();
        }
        if let Some(message) = &self.message {
            // What is indented can be read; a `Value` is always written.
            text += &serde_json::to_string_pretty(message).unwrap_or_default();
            text.push('\n');
        }
        if let Err(error) = output::piece(text.into()).await {
            let why = format!("the answer could not be written to stdout: {error}");
            self.unwritten = Some(why);
        }
    }

    /// Its status and metadata, as HTTP/1 writes a head.
    fn head(&self) -> String {
        let mut head = format!("{}\r\n", self.status());
        for (name, value) in &self.metadata {
            let value = String::from_utf8_lossy(value.as_bytes());
            // Writing to a string does not fail.
            let _infallible = write!(head, "{name}: {value}\r\n");
        }
        head + "\r\n"
    }
}

/// What a server sent besides its status.
fn own(mut metadata: HeaderMap) -> HeaderMap {
    for name in [GRPC_STATUS, GRPC_MESSAGE] {
        metadata.remove(name);
    }
    metadata
}

impl Answered for Reply {
    type Record = Written;

    fn record(&self) -> Written {
        Written {
            grpc_status: self.code.as_str(),
            grpc_code: self.code.number(),
            grpc_message: self.said.clone(),
            metadata: headers(&self.metadata),
            message: self.message.clone(),
        }
    }

    fn ending(&self) -> Option<Ending> {
        self.ending
    }

    fn instead_of(&self) -> Option<Failed> {
        None
    }

    fn exit(&self) -> Exit {
        if self.unwritten.is_some() {
            return Exit::Unwritten;
        }
        Exit::of_code(self.code)
    }

    fn error(&self, dependency: Dependency, _: u32) -> Option<String> {
        let why = self.unwritten.as_ref()?;
        Some(format!("{dependency}: {why}"))
    }

    fn status(&self) -> String {
        match self.said.as_str() {
            "" => self.code.to_string(),
            said => format!("{} \"{said}\"", self.code),
        }
    }
}
