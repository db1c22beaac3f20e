//! The protocol's version, as the conventions write it.

use http::Version;

/// Returns the version; none for one that the conventions don't name.
pub(crate) const fn protocol_version(version: Version) -> Option<&'static str> {
    Some(match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_11 => "1.1",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => return None,
    })
}
