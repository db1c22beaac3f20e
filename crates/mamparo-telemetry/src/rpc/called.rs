//! An RPC, before it is sent.

use std::cell::OnceCell;

use http::{HeaderMap, Request, Uri};

use super::describe::Described;
use super::method::{Method, as_sent};
use super::target::Target;
use crate::http::Server;

/// What a client calls; looked at only as far as somebody asks.
#[derive(Debug)]
pub(crate) struct Called<'a> {
    uri: &'a Uri,
    headers: &'a HeaderMap,
    target: &'a Target,
    method: OnceCell<Method>,
}

impl<'a> Called<'a> {
    pub(crate) fn new<A>(request: &'a Request<A>, target: &'a Target) -> Self {
        Self {
            uri: request.uri(),
            headers: request.headers(),
            target,
            method: OnceCell::new(),
        }
    }

    pub(crate) fn method(&self) -> Method {
        *self.method.get_or_init(|| Method::called(self.uri.path()))
    }

    pub(crate) fn server(&self) -> Option<Server> {
        self.target.find(self.uri, self.headers)
    }

    /// What spans say of it, with place for as many attributes more.
    pub(crate) fn describe(&self, more: usize) -> Described {
        Described::with_place_for(more)
            .method(self.method(), as_sent(self.uri.path()))
            .server(self.server())
    }
}
