//! Showing it: waterfalls, the table, the proofs; or one JSON object.

use std::time::Duration;

use serde::Serialize;

use super::figures::{Row, table};
use super::pricing::Watched;
use super::proof::Proof;
use super::protection::{Protection, tables};
use super::scenes::scenes;
use crate::output;
use crate::trace::{Kept, draw, millis, rows};

/// All that the demonstration found out.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub(super) proofs: Vec<Proof>,
    pub(super) dependencies: Vec<Row>,
    pub(super) grpc: Watched,
    pub(super) protection: Protection,
    pub(super) requests: u32,
    pub(super) elapsed_ms: u128,
}

/// Writes it for people.
pub(super) fn show(found: &Found, kept: &Kept, elapsed: Duration) {
    for scene in scenes(kept) {
        output::say(scene.title);
        for line in draw(&rows(kept, scene.root), output::width()) {
            output::say(&line);
        }
        output::say("");
    }
    for (title, lines) in tables(&found.protection) {
        output::say(title);
        for line in lines {
            output::say(line.trim_end());
        }
        output::say("");
    }
    output::say("What the metrics say of each dependency:");
    for line in table(&found.dependencies) {
        output::say(line.trim_end());
    }
    output::say("");
    for proof in &found.proofs {
        output::verdict(proof.holds, &proof.line());
    }
    output::say(&format!(
        "{} requests to the shop and a few more, in {}",
        found.requests,
        millis(elapsed)
    ));
}
