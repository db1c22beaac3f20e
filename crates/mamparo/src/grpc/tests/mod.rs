//! What a service config says of which method, and what is refused.

pub(crate) mod cast;
#[cfg(feature = "service-config")]
mod json;
mod table;
