//! Policy files, as `check` and `explain` read them and tell what is wrong with them.

mod finding;
mod frame;
mod read;

pub(crate) use finding::Finding;
pub(crate) use frame::framed;
pub(crate) use read::files;
