//! What of a policy lives on when its settings change.

use std::collections::BTreeMap;
use std::sync::Arc;

use mamparo_core::grpc::Grpc;
use mamparo_core::http::Http;
use tower_layer::Identity;

use super::build::build;
use super::policies::{Made, Policy};
use super::view::View;
use super::{Origin, Problem};
use crate::stack::{Stack, Updates};

/// The stack of a dependency as it was built, and what the services that were made of it follow.
#[derive(Clone, Debug)]
pub(super) enum Live {
    Http(Updates<Http>, Arc<Stack>),
    Grpc(
        Updates<Grpc>,
        Arc<Stack<Identity, Identity, Identity, Grpc>>,
    ),
}

/// A policy itself holds that.
const OWN: usize = 1;

impl Live {
    /// Begins with new state.
    pub(super) fn http(stack: Stack) -> Self {
        let updates = stack.updates();
        let newest = updates.newest();
        Self::Http(updates, newest)
    }

    /// Begins with new state.
    pub(super) fn grpc(stack: Stack<Identity, Identity, Identity, Grpc>) -> Self {
        let updates = stack.updates();
        let newest = updates.newest();
        Self::Grpc(updates, newest)
    }

    /// Takes the settings of another over, which speaks the same protocol; its state is left behind.
    fn update(&self, settings: &Self) -> Self {
        match (self, settings) {
            (Self::Http(updates, _), Self::Http(_, settings)) => updates.update(settings),
            (Self::Grpc(updates, _), Self::Grpc(_, settings)) => updates.update(settings),
            (Self::Http(..), Self::Grpc(..)) | (Self::Grpc(..), Self::Http(..)) => {}
        }
        match self {
            Self::Http(updates, _) => Self::Http(updates.clone(), updates.newest()),
            Self::Grpc(updates, _) => Self::Grpc(updates.clone(), updates.newest()),
        }
    }

    const fn speaks_as(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Http(..), Self::Http(..)) | (Self::Grpc(..), Self::Grpc(..))
        )
    }

    fn is_in_use(&self) -> bool {
        match self {
            Self::Http(updates, _) => updates.are_followed_by_more_than(OWN),
            Self::Grpc(updates, _) => updates.are_followed_by_more_than(OWN),
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
    Begins(View, Live),
    Stays(View, Policy),
    Changes(View, Live, Policy),
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
            Change::Begins(view, live) => (view, live),
            Change::Stays(view, there) => (view, there.made().live.clone()),
            Change::Changes(view, built, there) => (view, there.made().live.update(&built)),
        };
        let named = self.all.into_iter().map(apply);
        let named = named.map(|(view, live)| (view.name.clone(), Policy::new(Made { view, live })));
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
