//! The settings of a peek.

use std::time::Duration;

use tower_layer::Layer;

use super::Peek;

/// For how long a head is held back at most: as long as an attempt takes by default.
const LONGEST: Duration = Duration::from_secs(2);

/// Shows a failure that a gRPC server tells in its trailers, before any data, in the head; see the [module](super).
///
/// ```
/// use mamparo::peek::PeekLayer;
/// use std::time::Duration;
///
/// let patient = PeekLayer::new().longest(Duration::from_secs(5));
/// assert!(!patient.is_off() && PeekLayer::off().is_off());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeekLayer {
    /// None where it is off.
    longest: Option<Duration>,
}

impl PeekLayer {
    /// Holds heads back for up to 2 s.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            longest: Some(LONGEST),
        }
    }

    /// Holds nothing back.
    #[must_use]
    pub const fn off() -> Self {
        Self { longest: None }
    }

    /// Sets for how long a head is held back at most; the call's deadline holds all the same. Zero looks at what is there.
    #[must_use]
    pub const fn longest(mut self, longest: Duration) -> Self {
        self.longest = Some(longest);
        self
    }

    /// Tells whether nothing is held back.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.longest.is_none()
    }
}

impl Default for PeekLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for PeekLayer {
    type Service = Peek<S>;

    fn layer(&self, inner: S) -> Peek<S> {
        Peek::new(inner, self.longest)
    }
}
