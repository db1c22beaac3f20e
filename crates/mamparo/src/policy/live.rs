//! What of a policy lives on when its settings change.

use std::collections::BTreeMap;

use mamparo_core::grpc::Grpc;
use mamparo_core::http::Http;

use super::build::{Built, build};
use super::policies::{Made, Policy};
use super::view::View;
use super::{Origin, Problem};
use crate::stack::Updates;

/// The state of a dependency: the services that were made of its stack follow it.
#[derive(Clone, Debug)]
pub(super) enum Live {
    Http(Updates<Http>),
    Grpc(Updates<Grpc>),
}

/// What a policy itself holds of that: its stack, and this.
const OWN: usize = 2;

impl Live {
    /// Begins with new state.
    fn begin(view: View, built: Built) -> Policy {
        let (built, live) = match built {
            Built::Http(stack) => {
                let (stack, updates) = stack.updatable();
                (Built::Http(stack), Self::Http(updates))
            }
            Built::Grpc(stack) => {
                let (stack, updates) = stack.updatable();
                (Built::Grpc(stack), Self::Grpc(updates))
            }
        };
        Policy::new(Made { view, built, live })
    }

    /// Takes new settings over, which are of the same protocol.
    fn update(&self, settings: &Built) -> Built {
        match (self, settings) {
            (Self::Http(updates), Built::Http(settings)) => updates.update(settings),
            (Self::Grpc(updates), Built::Grpc(settings)) => updates.update(settings),
            (Self::Http(_), Built::Grpc(_)) | (Self::Grpc(_), Built::Http(_)) => {}
        }
        match self {
            Self::Http(updates) => Built::Http(updates.stack()),
            Self::Grpc(updates) => Built::Grpc(updates.stack()),
        }
    }

    const fn speaks_as(&self, built: &Built) -> bool {
        matches!(
            (self, built),
            (Self::Http(_), Built::Http(_)) | (Self::Grpc(_), Built::Grpc(_))
        )
    }

    fn is_in_use(&self) -> bool {
        match self {
            Self::Http(updates) => updates.are_followed_by_more_than(OWN),
            Self::Grpc(updates) => updates.are_followed_by_more_than(OWN),
        }
    }
}

/// All policies, and those that the files name no more while a service still follows them.
#[derive(Clone, Debug, Default)]
pub(super) struct Dependencies {
    pub(super) named: BTreeMap<String, Policy>,
    dropped: BTreeMap<String, Policy>,
}

/// What becomes of one dependency.
enum Change {
    Begins(View, Built),
    Stays(View, Policy),
    Changes(View, Built, Policy),
}

/// All that is to be done, once all of it is known to be right.
pub(super) struct Changes {
    all: Vec<Change>,
    dropped: BTreeMap<String, Policy>,
    refused: Vec<View>,
}

impl Dependencies {
    /// Builds what is new or has changed; changes nothing yet.
    pub(super) fn changes(&self, views: Vec<View>, problems: &mut Vec<Problem>) -> Changes {
        let mut dropped = self.named.clone();
        dropped.extend(self.dropped.clone());
        let (mut all, mut refused) = (Vec::new(), Vec::new());
        for view in views {
            let there = dropped.remove(&view.name);
            if let Some(there) = &there
                && there.made().view.table.says_same(&view.table)
            {
                all.push(Change::Stays(view, there.clone()));
                continue;
            }
            let built = match build(&view) {
                Ok(built) => built,
                Err(problem) => {
                    problems.push(*problem);
                    refused.push(view);
                    continue;
                }
            };
            all.push(match there {
                Some(there) if there.made().live.speaks_as(&built) => {
                    Change::Changes(view, built, there)
                }
                Some(_) if self.named.contains_key(&view.name) => {
                    problems.push(other_protocol(&view));
                    refused.push(view);
                    continue;
                }
                _ => Change::Begins(view, built),
            });
        }
        Changes {
            all,
            dropped,
            refused,
        }
    }
}

impl Changes {
    /// Does nothing, and gives back what was to be done.
    pub(super) fn into_views(self) -> impl Iterator<Item = View> {
        let views = self.all.into_iter().map(|change| match change {
            Change::Begins(view, _) | Change::Stays(view, _) | Change::Changes(view, ..) => view,
        });
        views.chain(self.refused)
    }

    /// Does it: nothing here can fail.
    pub(super) fn apply(self) -> Dependencies {
        let apply = |change| match change {
            Change::Begins(view, built) => Live::begin(view, built),
            Change::Stays(view, there) => {
                let (built, live) = (there.made().built.clone(), there.made().live.clone());
                Policy::new(Made { view, built, live })
            }
            Change::Changes(view, built, there) => {
                let live = there.made().live.clone();
                let built = live.update(&built);
                Policy::new(Made { view, built, live })
            }
        };
        let named = self.all.into_iter().map(apply);
        let named = named.map(|policy| (policy.name().to_owned(), policy));
        let in_use = |(_, policy): &(String, Policy)| policy.made().live.is_in_use();
        Dependencies {
            named: named.collect(),
            dropped: self.dropped.into_iter().filter(in_use).collect(),
        }
    }
}

#[cold]
fn other_protocol(view: &View) -> Problem {
    let origin = match view.origin("protocol") {
        Origin::Default => view.origin.clone(),
        written => written,
    };
    Problem::error(
        "protocol-changed",
        &origin,
        view.path("protocol"),
        "it speaks another protocol than when it was loaded, and its services can't change that",
        "restart the program, or give the dependency another name",
    )
}
