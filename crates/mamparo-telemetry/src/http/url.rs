//! The whole address, without its secrets.

use http::Uri;

/// Query keys whose values are secrets (signed URLs of the large clouds); case-sensitive, as the conventions say.
const SECRET_KEYS: [&str; 7] = [
    "X-Amz-Signature",
    "X-Amz-Credential",
    "X-Amz-Security-Token",
    "AWSAccessKeyId",
    "Signature",
    "sig",
    "X-Goog-Signature",
];

const REDACTED: &str = "REDACTED";

/// Returns the address with user, password and the values of secret query keys replaced.
pub(crate) fn full_url(uri: &Uri) -> String {
    let scheme = uri.scheme_str().map_or(["", ""], |scheme| [scheme, "://"]);
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let query = uri.query();
    // Exact for an address without secrets, so that it is not copied again as an attribute.
    let length = scheme[0].len()
        + scheme[1].len()
        + authority.len()
        + uri.path().len()
        + query.map_or(0, |query| query.len() + 1);
    let mut url = String::with_capacity(length);
    url.extend(scheme);
    // Bytes: most names are too short for a search to be worth its preparation.
    match authority.bytes().rposition(|byte| byte == b'@') {
        Some(at) => {
            url.push_str("REDACTED:REDACTED");
            url.push_str(&authority[at..]);
        }
        None => url.push_str(authority),
    }
    url.push_str(uri.path());
    if let Some(query) = query {
        push_query(&mut url, query);
    }
    url
}

/// Returns the query with the values of secret keys replaced.
pub(crate) fn query(uri: &Uri) -> Option<String> {
    let query = uri.query()?;
    let mut shown = String::with_capacity(query.len() + 1);
    push_query(&mut shown, query);
    shown.remove(0);
    Some(shown)
}

fn push_query(url: &mut String, query: &str) {
    for (at, pair) in query.split('&').enumerate() {
        url.push(if at == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((key, _)) if SECRET_KEYS.contains(&key) => {
                url.push_str(key);
                url.push('=');
                url.push_str(REDACTED);
            }
            _ => url.push_str(pair),
        }
    }
}
