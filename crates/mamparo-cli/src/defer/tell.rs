//! What a running engine says of itself.

use mamparo_durable::handler::Listener;
use mamparo_durable::machine::{Alert, Label};
use serde_json::json;

use crate::output;

/// Tells alerts on stderr: as a line for people, or as JSON.
#[derive(Debug)]
pub(super) struct Tells {
    pub(super) json: bool,
}

impl Listener for Tells {
    fn alert(&self, alert: &Alert) {
        let id = alert.transaction_id.as_ref().map(|id| id.as_str());
        let detail = alert.detail.as_ref().map(Label::as_str);
        let (kind, count) = (alert.kind.as_str(), alert.count);
        if self.json {
            let line =
                json!({ "alert": kind, "transaction_id": id, "count": count, "detail": detail });
            return output::note(&line.to_string());
        }
        let mut line = format!("alert: {}", kind.replace('_', " "));
        if let Some(id) = id {
            line += &format!(": transaction {id}");
        }
        if count > 1 {
            line += &format!(" ({count})");
        }
        if let Some(detail) = detail {
            line += &format!(": {detail}");
        }
        output::warning(&output::plain(&line));
    }

    fn postponed(&self, dependency: &Label, transactions: u64) {
        if transactions == 0 {
            return;
        }
        if self.json {
            let line = json!({ "postponed": transactions, "dependency": dependency.as_str() });
            return output::note(&line.to_string());
        }
        let dependency = dependency.as_str();
        let line = format!("{dependency}: its breaker is open, {transactions} postponed together");
        output::note(&output::plain(&line));
    }
}
