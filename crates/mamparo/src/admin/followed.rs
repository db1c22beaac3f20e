//! All breakers of all dependencies, followed at once.

use std::future::poll_fn;
use std::mem;
use std::task::Poll;

use mamparo_core::breaker::Transition;

use crate::breaker::Transitions;
use crate::policy::Policies;

/// What the two breakers of a dependency observe, in the order in which a policy has them.
pub(super) const OBSERVES: [&str; 2] = ["attempts", "operations"];

/// As many changes as are told at once.
const AT_ONCE: usize = 256;

/// The breakers that are followed.
#[derive(Debug)]
pub(super) struct Followed {
    all: Vec<One>,
}

#[derive(Debug)]
struct One {
    dependency: String,
    observes: &'static str,
    transitions: Transitions,
}

/// A change of a breaker's state.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) dependency: String,
    pub(super) observes: &'static str,
    pub(super) transition: Transition,
}

impl Followed {
    pub(super) fn new(policies: &Policies) -> Self {
        let mut followed = Self { all: Vec::new() };
        followed.renew(policies);
        followed
    }

    /// Follows the breakers that there are now; nothing is lost of one that was followed before.
    pub(super) fn renew(&mut self, policies: &Policies) {
        let mut before = mem::take(&mut self.all);
        for (name, policy) in policies.current().iter() {
            for (observes, handle) in OBSERVES.into_iter().zip(policy.breakers()) {
                let Some(handle) = handle else { continue };
                let is_it = |one: &One| {
                    one.dependency == name
                        && one.observes == observes
                        && handle.is_followed_by(&one.transitions)
                };
                let known = before.iter().position(is_it);
                self.all.push(match known {
                    Some(at) => before.swap_remove(at),
                    None => One {
                        dependency: name.to_owned(),
                        observes,
                        transitions: handle.transitions(),
                    },
                });
            }
        }
    }

    /// Waits until something changes: all that has, in each breaker's order. Safe to cancel.
    pub(super) async fn next(&mut self) -> Vec<Changed> {
        poll_fn(|cx| {
            let mut changed = Vec::new();
            for one in &mut self.all {
                while changed.len() < AT_ONCE
                    && let Poll::Ready(transition) = one.transitions.poll_next(cx)
                {
                    changed.push(Changed {
                        dependency: one.dependency.clone(),
                        observes: one.observes,
                        transition,
                    });
                }
            }
            match changed.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(changed),
            }
        })
        .await
    }
}
