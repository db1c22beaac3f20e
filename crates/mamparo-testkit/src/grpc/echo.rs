//! The service that does as its request says.

use super::generated::echo_server::Echo;
use super::generated::{EchoReply, EchoRequest, Failure};
use futures_util::stream::{self, Stream, StreamExt};
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::{Code, Request, Response, Status, Streaming};

/// How many frames `Count` sends when asked for more: a test's mistake must not run on.
const MAX_FRAMES: u32 = 10_000;

/// The generated service, done as each request asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echoing;

type Replies = Pin<Box<dyn Stream<Item = Result<EchoReply, Status>> + Send>>;

#[tonic::async_trait]
impl Echo for Echoing {
    type CountStream = Replies;
    type ChatStream = Replies;

    async fn say(&self, request: Request<EchoRequest>) -> Result<Response<EchoReply>, Status> {
        let reply = answer(request.into_inner(), 1).await?;
        Ok(Response::new(reply))
    }

    async fn count(
        &self,
        request: Request<EchoRequest>,
    ) -> Result<Response<Self::CountStream>, Status> {
        let request = request.into_inner();
        wait(request.delay_ms).await;
        let frames = request.frames.min(MAX_FRAMES);
        let failure = request.failure.clone();
        if let Some(early) = failure.as_ref().filter(|early| frames == 0 && !early.late) {
            return Err(early.status());
        }
        let replies = stream::iter(1..=frames).then(move |number| {
            let (text, every) = (request.text.clone(), request.every_ms);
            async move {
                wait(if number == 1 { 0 } else { every }).await;
                Ok(EchoReply { text, number })
            }
        });
        let end = stream::iter(failure.map(|failure| Err(failure.status())));
        Ok(Response::new(Box::pin(replies.chain(end))))
    }

    async fn collect(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<EchoReply>, Status> {
        let mut requests = request.into_inner();
        let mut whole = EchoReply::default();
        while let Some(request) = requests.message().await? {
            let reply = answer(request, whole.number + 1).await?;
            whole.text += &reply.text;
            whole.number = reply.number;
        }
        Ok(Response::new(whole))
    }

    async fn chat(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<Self::ChatStream>, Status> {
        let numbered = request.into_inner().zip(stream::iter(1..));
        let replies =
            numbered.then(|(request, number)| async move { answer(request?, number).await });
        Ok(Response::new(Box::pin(replies)))
    }
}

async fn answer(request: EchoRequest, number: u32) -> Result<EchoReply, Status> {
    wait(request.delay_ms).await;
    match request.failure {
        Some(failure) => Err(failure.status()),
        None => Ok(EchoReply {
            text: request.text,
            number,
        }),
    }
}

/// No wait is no timer either.
async fn wait(ms: u32) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms.into())).await;
    }
}

impl EchoRequest {
    /// Asks for a text, at once.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }

    /// Asks for an answer after a wait.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay_ms = millis(delay);
        self
    }

    /// Asks `Count` for so many frames, so far apart.
    #[must_use]
    pub fn frames(mut self, frames: u32, every: Duration) -> Self {
        (self.frames, self.every_ms) = (frames, millis(every));
        self
    }

    /// Asks for a status in the place of an answer.
    #[must_use]
    pub fn failing(mut self, code: Code) -> Self {
        self.failure = Some(Failure {
            code: code.into(),
            message: format!("asked for {code:?}"),
            ..Failure::default()
        });
        self
    }
}

impl Failure {
    fn status(&self) -> Status {
        let mut metadata = MetadataMap::new();
        for entry in &self.metadata {
            let key = AsciiMetadataKey::from_str(&entry.key).expect("a valid key");
            let value = AsciiMetadataValue::from_str(&entry.value).expect("a valid value");
            metadata.append(key, value);
        }
        Status::with_metadata(Code::from_i32(self.code), self.message.clone(), metadata)
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).expect("a wait that a test outlives")
}
