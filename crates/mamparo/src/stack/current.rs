//! A stack's services, which follow its settings.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use arc_swap::ArcSwapOption;
use tower_service::Service;

/// A service of a stack: it is put together anew when the stack's [settings change](super::Updates).
///
/// It looks for that as it gets ready for a call; a call that is under way ends as it began. Where settings can't change,
/// it is the plain service.
pub struct Current<T, R> {
    inner: T,
    version: u64,
    newest: Option<Arc<Newest<T, R>>>,
}

/// How a service is put together.
pub trait Recipe<T> {
    /// Returns the version that it would be of now: one load.
    fn version(&self) -> u64;

    /// Puts it together, and says of which version it is at least.
    fn make(&self) -> (u64, T);
}

/// The newest service, for all clones.
struct Newest<T, R> {
    recipe: R,
    made: ArcSwapOption<(u64, T)>,
    making: Mutex<()>,
}

impl<T, R: Recipe<T>> Newest<T, R> {
    /// The one of the newest version: made once, by whoever asks first.
    #[cold]
    fn get(&self) -> Arc<(u64, T)> {
        let fresh = || {
            let made = self.made.load_full();
            made.filter(|made| made.0 == self.recipe.version())
        };
        if let Some(made) = fresh() {
            return made;
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        fresh().unwrap_or_else(|| {
            let made = Arc::new(self.recipe.make());
            self.made.store(Some(Arc::clone(&made)));
            made
        })
    }
}

impl<T, R> Current<T, R> {
    pub(super) const fn fixed(inner: T) -> Self {
        Self {
            inner,
            version: 0,
            newest: None,
        }
    }

    pub(super) fn following(recipe: R) -> Self
    where
        R: Recipe<T>,
    {
        let (version, inner) = recipe.make();
        let newest = Newest {
            recipe,
            made: ArcSwapOption::empty(),
            making: Mutex::default(),
        };
        Self {
            inner,
            version,
            newest: Some(Arc::new(newest)),
        }
    }
}

impl<T, R: Recipe<T>> Current<T, R> {
    /// The newest service, if this one is not.
    #[inline]
    fn newer(&self) -> Option<Arc<(u64, T)>> {
        let newest = self.newest.as_ref()?;
        (newest.recipe.version() != self.version).then(|| newest.get())
    }
}

impl<T, R, Req> Service<Req> for Current<T, R>
where
    T: Service<Req> + Clone,
    R: Recipe<T>,
{
    type Response = T::Response;
    type Error = T::Error;
    type Future = T::Future;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), T::Error>> {
        if let Some(newer) = self.newer() {
            self.version = newer.0;
            self.inner = newer.1.clone();
        }
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Req) -> T::Future {
        self.inner.call(request)
    }
}

impl<T: Clone, R: Recipe<T>> Clone for Current<T, R> {
    /// Clones the newest: a service that is only ever cloned, call by call, need not be put together at each.
    #[inline]
    fn clone(&self) -> Self {
        let newest = self.newest.clone();
        match self.newer() {
            Some(newer) => Self {
                inner: newer.1.clone(),
                version: newer.0,
                newest,
            },
            None => Self {
                inner: self.inner.clone(),
                version: self.version,
                newest,
            },
        }
    }
}

impl<T: fmt::Debug, R> fmt::Debug for Current<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
