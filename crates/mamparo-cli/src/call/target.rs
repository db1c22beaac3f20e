//! Where a call goes.

use std::fmt::Display;

use http::{HeaderMap, Uri};
use reqwest::Url;

use super::about::Refused;
use crate::args::{CallArgs, Field};

/// Takes the address that was typed.
pub(super) fn url(typed: &str) -> Result<Url, Refused> {
    let no_url = |why: &dyn Display| Refused(format!("`{typed}` is no URL: {why}"));
    if !typed.contains("://") {
        return Err(no_url(&format_args!(
            "it has no scheme, write http://{typed}"
        )));
    }
    let mut url = Url::parse(typed).map_err(|error| no_url(&error))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refused(format!(
            "scheme `{}` can't be called: use http or https",
            url.scheme()
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused(
            "a name and password in a URL are not sent: use -H 'authorization: …'".to_owned(),
        ));
    }
    // It is not part of a request (RFC 9110 §7.1).
    url.set_fragment(None);
    Ok(url)
}

/// The header fields that were typed.
pub(super) fn headers(args: &CallArgs) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for Field { name, value } in &args.headers {
        headers.append(name, value.clone());
    }
    headers
}

/// The name of the other side: as typed, or its host and port.
pub(super) fn name<'a>(args: &'a CallArgs, uri: &'a Uri) -> Result<&'a str, Refused> {
    match &args.dependency {
        Some(name) if name.trim().is_empty() => Err(Refused(
            "--dependency is empty: leave it out, or name it".to_owned(),
        )),
        Some(name) => Ok(name),
        None => Ok(uri.authority().map_or("", |authority| authority.as_str())),
    }
}
