//! What a scripted HTTP/2 server does with one request.

use bytes::{BufMut, Bytes};
use prost::Message;
use std::time::Duration;

/// What is done with one request, step by step, once all of it has arrived; then nothing more, and the stream stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    pub(super) early: bool,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Headers {
        fields: Vec<(String, String)>,
        last: bool,
    },
    Data {
        data: Bytes,
        last: bool,
    },
    Reset(h2::Reason),
    GoAway {
        below: bool,
        reason: h2::Reason,
    },
    Wait(Duration),
    Close,
}

impl Exchange {
    /// Makes an exchange in which nothing is done: the stream never ends.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins as soon as the head of the request is there.
    #[must_use]
    pub fn early(mut self) -> Self {
        self.early = true;
        self
    }

    /// Sends the head of a gRPC answer.
    #[must_use]
    pub fn head(self) -> Self {
        self.headers("200", &[("content-type", "application/grpc")])
    }

    /// Sends a head with these fields, and leaves the stream open.
    #[must_use]
    pub fn headers(self, status: &str, fields: &[(&str, &str)]) -> Self {
        self.fields(&[&[(":status", status)], fields].concat(), false)
    }

    /// Sends a head that ends the stream: Trailers-Only, with a content type of gRPC's.
    #[must_use]
    pub fn trailers_only(self, fields: &[(&str, &str)]) -> Self {
        let head = [(":status", "200"), ("content-type", "application/grpc")];
        self.fields(&[&head, fields].concat(), true)
    }

    /// Sends a message as gRPC frames it.
    ///
    /// # Panics
    ///
    /// Panics if the message is 4 GiB long.
    #[must_use]
    pub fn message(self, message: &impl Message) -> Self {
        let encoded = message.encode_to_vec();
        let mut framed = vec![0];
        framed.put_u32(u32::try_from(encoded.len()).expect("a short message"));
        framed.extend(encoded);
        self.data(framed)
    }

    /// Sends bytes, and leaves the stream open.
    #[must_use]
    pub fn data(self, data: impl Into<Bytes>) -> Self {
        let (data, last) = (data.into(), false);
        self.then(Step::Data { data, last })
    }

    /// Ends the stream with neither data nor trailers.
    #[must_use]
    pub fn end(self) -> Self {
        let (data, last) = (Bytes::new(), true);
        self.then(Step::Data { data, last })
    }

    /// Sends trailers, which end the stream. Nothing keeps a script from sending more.
    #[must_use]
    pub fn trailers(self, fields: &[(&str, &str)]) -> Self {
        self.fields(fields, true)
    }

    /// Sends trailers that do not end the stream, which they must.
    #[must_use]
    pub fn open_trailers(self, fields: &[(&str, &str)]) -> Self {
        self.fields(fields, false)
    }

    /// Resets the stream.
    #[must_use]
    pub fn reset(self, reason: h2::Reason) -> Self {
        self.then(Step::Reset(reason))
    }

    /// Says that the connection takes no more streams, and that this one and later ones were not looked at; then closes it.
    #[must_use]
    pub fn go_away(self) -> Self {
        let (below, reason) = (true, h2::Reason::NO_ERROR);
        self.then(Step::GoAway { below, reason }).then(Step::Close)
    }

    /// Says that the connection takes no more streams after this one, and why; goes on with this one.
    #[must_use]
    pub fn last(self, reason: h2::Reason) -> Self {
        let below = false;
        self.then(Step::GoAway { below, reason })
    }

    /// Closes the connection.
    #[must_use]
    pub fn close(self) -> Self {
        self.then(Step::Close)
    }

    /// Waits.
    #[must_use]
    pub fn wait(self, duration: Duration) -> Self {
        self.then(Step::Wait(duration))
    }

    fn fields(self, fields: &[(&str, &str)], last: bool) -> Self {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let fields = fields.iter().map(own).collect();
        self.then(Step::Headers { fields, last })
    }

    fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}
