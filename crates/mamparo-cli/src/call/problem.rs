//! What a failed answer says of itself: Problem Details (RFC 9457).

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::ending::one_line;
use crate::output;

/// As much of such an answer is read; whoever says more is not quoted.
pub(super) const MAX_READ: usize = 64 << 10;

/// As much of it is said.
const MAX_SAID: usize = 200;

/// Tells whether an answer is one.
pub(super) fn is_problem(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/problem+json"))
}

/// Says its title and its detail, on one line; a member that is no text is ignored (§3.1).
pub(super) fn said(json: &[u8]) -> Option<String> {
    let problem: Value = serde_json::from_slice(json).ok()?;
    let texts = ["title", "detail"].into_iter();
    let texts = texts.filter_map(|name| problem.get(name)?.as_str());
    let said = output::plain(&one_line(&texts.collect::<Vec<_>>().join(": ")));
    let cut: String = said.chars().take(MAX_SAID).collect();
    match cut.len() < said.len() {
        true => Some(cut + "…"),
        false => Some(cut).filter(|said| !said.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PD-V6`.
    #[test]
    fn what_is_of_the_wrong_kind_is_not_said() {
        let long = format!(r#"{{"detail":"{}"}}"#, "ñ".repeat(500));
        let cut = "ñ".repeat(MAX_SAID) + "…";
        let vectors = [
            (r#"{"status":"429","title":5}"#, None),
            (r#"{"title":5,"detail":"come back"}"#, Some("come back")),
            (r#"{"title":"Gone","detail":["x"]}"#, Some("Gone")),
            (
                r#"{"title":"Out of\nStock","detail":"2 \u001b[2Jleft","unknown":{}}"#,
                Some("Out of Stock: 2 [2Jleft"),
            ),
            (long.as_str(), Some(cut.as_str())),
            (r#"{"type":"about:blank"}"#, None),
            (r#"["title"]"#, None),
            (r#"{"title":"#, None),
            ("", None),
        ];
        for (json, expected) in vectors {
            assert_eq!(said(json.as_bytes()).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn only_problems_are_read() {
        for (kind, expected) in [
            ("application/problem+json", true),
            ("Application/Problem+JSON; charset=utf-8", true),
            ("application/json", false),
            ("application/problem+xml", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())]);
            assert_eq!(is_problem(&headers), expected, "{kind}");
        }
        assert!(!is_problem(&HeaderMap::new()));
    }
}
