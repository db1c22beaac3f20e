//! What of a policy is not for everybody's eyes.

use std::borrow::Cow;

use crate::policy::{Effective, Policy};

/// Stands where something was left out.
const HIDDEN: &str = "***";

/// A URL without what may be secret: its user and password, its query and its fragment.
pub(super) fn url(url: &str) -> Cow<'_, str> {
    let (place, rest) = match url.find(['?', '#']) {
        Some(at) => (&url[..at], HIDDEN),
        None => (url, ""),
    };
    let begin = place.find("//").map_or(0, |at| at + 2);
    let end = place[begin..]
        .find('/')
        .map_or(place.len(), |at| begin + at);
    let host = place[begin..end].rfind('@').map(|at| begin + at + 1);
    match (host, rest) {
        (None, "") => Cow::Borrowed(url),
        (None, rest) => format!("{place}?{rest}").into(),
        (Some(host), "") => format!("{}{HIDDEN}@{}", &place[..begin], &place[host..]).into(),
        (Some(host), rest) => {
            format!("{}{HIDDEN}@{}?{rest}", &place[..begin], &place[host..]).into()
        }
    }
}

/// A policy's settings, as they may be shown.
pub(super) fn settings(policy: &Policy) -> Vec<Effective> {
    let mut all = policy.effective();
    if let Some(written) = policy.url() {
        let shown = all.iter_mut().filter(|setting| setting.path == "url");
        shown.for_each(|setting| setting.value = format!("{:?}", url(written)));
    }
    all
}

/// A policy in words, as it may be shown.
pub(super) fn words(policy: &Policy) -> String {
    let said = policy.describe();
    let Some(written) = policy.url() else {
        return said;
    };
    let mut shown = String::with_capacity(said.len());
    for line in said.lines() {
        let indent = line.len() - line.trim_start().len();
        match line[indent..].starts_with("url = ") {
            true => {
                let origin = line.rfind("  (").map_or("", |at| &line[at..]);
                shown.push_str(&format!(
                    "{}url = {:?}{origin}",
                    &line[..indent],
                    url(written)
                ));
            }
            false => shown.push_str(line),
        }
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_url_is_shown_without_user_query_and_fragment() {
        for (written, shown) in [
            ("http://catalog:8080", "http://catalog:8080"),
            ("http://catalog/v1/a@b", "http://catalog/v1/a@b"),
            (
                "http://me:secret@catalog:8080/v1",
                "http://***@catalog:8080/v1",
            ),
            ("http://me:se@cret@catalog", "http://***@catalog"),
            ("me:secret@catalog", "***@catalog"),
            ("http://catalog/v1?key=secret", "http://catalog/v1?***"),
            ("http://catalog#secret", "http://catalog?***"),
            ("http://me@catalog?secret#more", "http://***@catalog?***"),
        ] {
            assert_eq!(url(written), shown);
        }
    }

    proptest! {
        #[test]
        fn no_user_and_no_query_is_ever_shown(user in "[a-z0-9:@%]{0,12}", query in "[a-z0-9&=?#/@]{0,12}") {
            let written = format!("http://{user}SECRET@host/path?SECRET{query}");
            prop_assert!(!url(&written).contains("SECRET"));
        }
    }
}
