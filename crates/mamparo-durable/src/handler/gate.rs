//! Whether the dependency may be asked.

use std::fmt::Debug;

use crate::machine::{Gate, Terms};

/// Says whether a dependency's breaker lets an attempt pass. Asked for each fire, before it claims.
///
/// It looks, and takes nothing: a probe's place is taken when the request is sent, not here.
///
/// ```
/// use mamparo_durable::handler::Gatekeeper;
/// use mamparo_durable::machine::{Gate, Terms};
///
/// #[derive(Debug)]
/// struct ClosedForRepairs;
///
/// impl Gatekeeper for ClosedForRepairs {
///     fn gate(&self, terms: &Terms) -> Gate {
///         match terms.dependency.as_ref().map(|dependency| dependency.as_str()) {
///             Some("psp") => Gate::Postpone { until: None },
///             _ => Gate::Pass,
///         }
///     }
/// }
/// ```
pub trait Gatekeeper: Debug + Send + Sync + 'static {
    /// Says it.
    fn gate(&self, terms: &Terms) -> Gate;
}

/// Lets everything pass.
impl Gatekeeper for () {
    fn gate(&self, _: &Terms) -> Gate {
        Gate::Pass
    }
}
