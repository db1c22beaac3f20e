//! How a protocol's answers are made up, and spoiled.

use std::marker::PhantomData;

use bytes::Bytes;
use http::Response;

use super::{BodyFault, FaultBody};

/// What an answer is that nobody sent.
pub trait Protocol: 'static {
    /// A made-up answer.
    type MadeUp: 'static;
}

/// Says how an inner service's answer is passed on, and how a made-up one takes its place.
pub trait Spoil<Res>: Protocol {
    /// What the layer answers.
    type Out;

    /// Passes an answer on, with its body spoiled if that is asked.
    fn pass(answer: Res, body: Option<BodyFault>) -> Self::Out;

    /// Answers with what was made up.
    fn make_up(answer: Self::MadeUp) -> Self::Out;
}

/// Answers without a stream: any service whose answers are such values.
#[derive(Clone, Copy, Debug)]
pub struct Whole<Res>(PhantomData<fn() -> Res>);

impl<Res: 'static> Protocol for Whole<Res> {
    type MadeUp = Res;
}

impl<Res: 'static> Spoil<Res> for Whole<Res> {
    type Out = Res;

    #[inline]
    fn pass(answer: Res, _: Option<BodyFault>) -> Res {
        answer
    }

    #[inline]
    fn make_up(answer: Res) -> Res {
        answer
    }
}

/// HTTP's answers, whose bodies may break or end early.
#[derive(Clone, Copy, Debug)]
pub struct HttpAnswer;

impl Protocol for HttpAnswer {
    type MadeUp = Response<Bytes>;
}

impl<B> Spoil<Response<B>> for HttpAnswer {
    type Out = Response<FaultBody<B>>;

    #[inline]
    fn pass(answer: Response<B>, fault: Option<BodyFault>) -> Self::Out {
        answer.map(|body| match fault {
            Some(fault) => FaultBody::cut(body, fault),
            None => FaultBody::inner(body),
        })
    }

    #[inline]
    fn make_up(answer: Response<Bytes>) -> Self::Out {
        answer.map(FaultBody::ours)
    }
}
