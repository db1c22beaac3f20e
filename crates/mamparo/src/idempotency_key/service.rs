//! The wiring of the key.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Request;
use http::request::Parts;
use mamparo_core::{BoxError, Event, LayerKind, Scope, What};
use tower_service::Service;

use super::IdempotencyKeyFuture;
use super::layer::Shared;
use super::state::{Key, fresh, key, short_hash};

/// Gives each operation one idempotency key; see the [module](super).
#[derive(Clone, Debug)]
pub struct IdempotencyKey<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> IdempotencyKey<S> {
    pub(super) const fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }
}

impl<S, B> Service<Request<B>> for IdempotencyKey<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = IdempotencyKeyFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        // First, since taking a request apart moves it twice.
        if self.shared.policy.settings.off {
            return IdempotencyKeyFuture::sent(self.inner.call(request), None);
        }
        let (mut head, body) = request.into_parts();
        let scope = match self.shared.prepare(&mut head) {
            Ok(scope) => scope,
            Err(error) => return IdempotencyKeyFuture::failed(error),
        };
        let request = Request::from_parts(head, body);
        match scope {
            Some(mut scope) => {
                let entered = scope.entered();
                let future = self.inner.call(request);
                drop(entered);
                IdempotencyKeyFuture::sent(future, Some(Box::new(scope)))
            }
            None => IdempotencyKeyFuture::sent(self.inner.call(request), None),
        }
    }
}

impl Shared {
    /// Gives the request its key if it needs one; returns the scope of a request that has one.
    fn prepare(&self, head: &mut Parts) -> Result<Option<Scope>, BoxError> {
        let settings = &self.policy.settings;
        match key(settings, &head.method, &head.headers) {
            Key::None => Ok(None),
            Key::Own(hash) => Ok(Some(self.scope(hash))),
            Key::Needed => {
                let made = settings.source.as_ref().and_then(|source| source.key(head));
                let mut value = match made {
                    Some(value) => value,
                    None => fresh(settings.form, settings.wall_clock.now())?,
                };
                let hash = short_hash(&value);
                // Whoever prints the headers does not print the key, and HTTP/2 does not index it.
                value.set_sensitive(true);
                head.headers.try_insert(&settings.header, value)?;
                let scope = self.scope(hash);
                if let Some(observer) = &self.observer {
                    Event::report(Some(observer), &scope.context(), What::KeyAdded { hash });
                }
                Ok(Some(scope))
            }
        }
    }

    fn scope(&self, hash: NonZeroU64) -> Scope {
        let mut scope = Scope::join(LayerKind::IdempotencyKey, self.dependency);
        scope.set_key_hash(Some(hash));
        scope
    }
}
