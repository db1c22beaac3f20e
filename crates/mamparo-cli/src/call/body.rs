//! The request's body, read as it is sent.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, ReadBuf};

use super::about::Refused;
use crate::args::Data;

/// As many bytes as one frame holds.
const CHUNK: usize = 16 << 10;

/// A request's body: text, or what a file or stdin gives.
#[derive(Debug)]
pub(super) enum CallBody {
    Text(Bytes),
    Read(Reading),
}

/// Something that is read until it ends.
pub(super) struct Reading {
    source: Box<dyn AsyncRead + Send + Sync + Unpin>,
    chunk: Box<[u8]>,
    /// What is left of it, where that is known.
    left: Option<u64>,
}

impl CallBody {
    /// Opens where the body comes from.
    pub(super) async fn open(data: Option<Data>) -> Result<Self, Refused> {
        Ok(match data {
            None => Self::Text(Bytes::new()),
            Some(Data::Text(text)) => Self::Text(text),
            Some(Data::Stdin) => Self::Read(Reading::new(tokio::io::stdin(), None)),
            Some(Data::File(path)) => {
                let unreadable =
                    |error| Refused(format!("{} can't be read: {error}", path.display()));
                let file = tokio::fs::File::open(&path).await.map_err(unreadable)?;
                let about = file.metadata().await.map_err(unreadable)?;
                if about.is_dir() {
                    return Err(Refused(format!(
                        "{} is a folder: name a file",
                        path.display()
                    )));
                }
                // A pipe has no length that could be told before.
                let length = about.is_file().then_some(about.len());
                Self::Read(Reading::new(file, length))
            }
        })
    }
}

impl Reading {
    fn new(source: impl AsyncRead + Send + Sync + Unpin + 'static, left: Option<u64>) -> Self {
        Self {
            source: Box::new(source),
            chunk: vec![0; CHUNK].into(),
            left,
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let mut buffer = ReadBuf::new(&mut self.chunk);
        ready!(Pin::new(&mut self.source).poll_read(cx, &mut buffer))?;
        let read = buffer.filled();
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(read.len() as u64);
        }
        Poll::Ready(Ok((!read.is_empty()).then(|| Bytes::copy_from_slice(read))))
    }
}

impl Body for CallBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let read = match self.get_mut() {
            Self::Text(text) if text.is_empty() => Ok(None),
            Self::Text(text) => Ok(Some(std::mem::take(text))),
            Self::Read(reading) => ready!(reading.poll_read(cx)),
        };
        Poll::Ready(read.map(|bytes| bytes.map(Frame::data)).transpose())
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Read(reading) => reading.left == Some(0),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => SizeHint::with_exact(text.len() as u64),
            Self::Read(reading) => reading
                .left
                .map_or_else(SizeHint::new, SizeHint::with_exact),
        }
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
