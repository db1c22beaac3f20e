//! What goes wrong, how often, and for which requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::{BoxError, InvalidSetting};

use super::{BodyFault, HttpAnswer, Protocol};

/// As many faults as a plan can hold: each is asked at every call.
pub const MAX_FAULTS: usize = 32;

/// One thing that goes wrong: at every call, unless a [`rate`](Self::rate) or a [predicate](Self::when) says otherwise.
pub struct Fault<Req, P: Protocol> {
    pub(super) effect: Effect<P::MadeUp>,
    pub(super) rate: f64,
    pub(super) when: Option<Predicate<Req>>,
}

type Predicate<Req> = Arc<dyn Fn(&Req) -> bool + Send + Sync>;

/// What a fault does.
pub(super) enum Effect<M> {
    Latency { least: Duration, most: Duration },
    Error(Make<BoxError>),
    Response(Make<M>),
    Body(BodyFault),
}

type Make<T> = Arc<dyn Fn() -> T + Send + Sync>;

impl<Req, P: Protocol> Fault<Req, P> {
    /// Makes answers late by a fixed time.
    #[must_use]
    pub fn latency(late: Duration) -> Self {
        Self::latency_between(late, late)
    }

    /// Makes answers late by a time that is drawn evenly from between two.
    #[must_use]
    pub fn latency_between(least: Duration, most: Duration) -> Self {
        Self::always(Effect::Latency { least, most })
    }

    /// Fails with an error instead of the call.
    #[must_use]
    pub fn error<E: Into<BoxError>>(error: impl Fn() -> E + Send + Sync + 'static) -> Self {
        Self::always(Effect::Error(Arc::new(move || error().into())))
    }

    /// Answers with a response instead of the call.
    #[must_use]
    pub fn response(response: impl Fn() -> P::MadeUp + Send + Sync + 'static) -> Self {
        Self::always(Effect::Response(Arc::new(response)))
    }

    fn always(effect: Effect<P::MadeUp>) -> Self {
        Self {
            effect,
            rate: 1.0,
            when: None,
        }
    }

    /// Sets the share of calls that it hits, from 0 (none) to 1 (all, the default); of those that its predicate picks.
    #[must_use]
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// Picks the requests that it may hit; all by default.
    #[must_use]
    pub fn when(mut self, picks: impl Fn(&Req) -> bool + Send + Sync + 'static) -> Self {
        self.when = Some(Arc::new(picks));
        self
    }

    fn check(&self) -> Result<(), InvalidSetting> {
        // Written so that a rate that is not a number is refused too.
        if !(0.0..=1.0).contains(&self.rate) {
            let allowed = "must be from 0 to 1: the share of calls that it hits";
            return Err(InvalidSetting::new("fault.rate", self.rate, allowed));
        }
        if let Effect::Latency { least, most } = &self.effect
            && least > most
        {
            let value = format!("{least:?}..{most:?}");
            let allowed = "must begin with the shorter time";
            return Err(InvalidSetting::new("fault.latency", value, allowed));
        }
        Ok(())
    }
}

impl<Req> Fault<Req, HttpAnswer> {
    /// Breaks the answer's body after so many bytes, as a reset of its connection would.
    #[must_use]
    pub fn drop_body(after: u64) -> Self {
        Self::always(Effect::Body(BodyFault::Drop(after)))
    }

    /// Ends the answer's body after so many bytes as if that were all, whatever its `content-length` says.
    #[must_use]
    pub fn truncate_body(after: u64) -> Self {
        Self::always(Effect::Body(BodyFault::Truncate(after)))
    }
}

impl<M> Effect<M> {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Latency { .. } => "latency",
            Self::Error(_) => "error",
            Self::Response(_) => "response",
            Self::Body(BodyFault::Drop(_)) => "dropped_body",
            Self::Body(BodyFault::Truncate(_)) => "truncated_body",
        }
    }
}

/// Faults that were checked, and the seed from which each call's are drawn; cheap to clone.
pub struct FaultPlan<Req, P: Protocol> {
    pub(super) faults: Arc<[Fault<Req, P>]>,
    seed: u64,
}

impl<Req, P: Protocol> FaultPlan<Req, P> {
    /// Plans these faults, with a seed that is drawn.
    ///
    /// # Errors
    ///
    /// Refuses a rate that is not from 0 to 1, a latency whose longest time is shorter than its shortest, and more than
    /// [`MAX_FAULTS`].
    ///
    /// ```
    /// use mamparo::fault::{Fault, FaultPlan, Whole};
    /// let often = Fault::<u32, Whole<u32>>::error(|| "down").rate(1.5);
    /// let error = FaultPlan::new([often]).unwrap_err();
    /// assert_eq!(error.setting(), "fault.rate");
    /// ```
    pub fn new(faults: impl IntoIterator<Item = Fault<Req, P>>) -> Result<Self, InvalidSetting> {
        let faults: Arc<[_]> = faults.into_iter().take(MAX_FAULTS + 1).collect();
        if faults.len() > MAX_FAULTS {
            return Err(InvalidSetting::new(
                "faults",
                faults.len(),
                "must be 32 at most: each is asked at every call",
            ));
        }
        faults.iter().try_for_each(Fault::check)?;
        let seed = fastrand::u64(..);
        Ok(Self { faults, seed })
    }

    /// Sets the seed: the same calls in the same order then meet the same faults.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Returns the seed, to run the same again.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }
}

impl<Req, P: Protocol> Clone for FaultPlan<Req, P> {
    fn clone(&self) -> Self {
        Self {
            faults: Arc::clone(&self.faults),
            seed: self.seed,
        }
    }
}

impl<Req, P: Protocol> fmt::Debug for FaultPlan<Req, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultPlan")
            .field("faults", &self.faults)
            .field("seed", &self.seed)
            .finish()
    }
}

impl<Req, P: Protocol> fmt::Debug for Fault<Req, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("effect", &self.effect.name())
            .field("rate", &self.rate)
            .field("for_some", &self.when.is_some())
            .finish()
    }
}
