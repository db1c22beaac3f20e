//! Walking the causes of an error.

use std::error::Error;
use std::io;

use crate::Rejection;

/// As many causes as are looked at: a chain that turns in a circle ends here.
pub const MAX_DEPTH: usize = 32;

/// Walks an error and its causes, also through an [`io::Error`], whose `source` skips the error it wraps.
pub fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| cause(error)).take(MAX_DEPTH)
}

fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    // With the feature `tonic` its cause is the status that it stands for, which would be made by asking for it.
    if error.is::<Rejection>() {
        return None;
    }
    match error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// Finds the first cause of a type.
///
/// ```
/// use mamparo_core::chain;
/// use std::io;
///
/// let wrapped = io::Error::other(io::Error::other("inside"));
/// assert!(chain::find::<io::Error>(&wrapped).is_some());
/// ```
#[must_use]
pub fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    chain(error).find_map(|cause| cause.downcast_ref())
}
