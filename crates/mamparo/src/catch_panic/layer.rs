//! The layer, which has no settings.

use tower_layer::Layer;

use super::CatchPanic;

/// Turns a handler's panic into an error; see the [module](super).
#[derive(Clone, Copy, Debug, Default)]
pub struct CatchPanicLayer(());

impl CatchPanicLayer {
    /// Makes the layer.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl<S> Layer<S> for CatchPanicLayer {
    type Service = CatchPanic<S>;

    fn layer(&self, inner: S) -> CatchPanic<S> {
        CatchPanic::new(inner)
    }
}
