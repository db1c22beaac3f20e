//! The service laws, held by every layer (`docs/service-laws.md`).

/// Folder names of the layers that the laws are run over; the tidy test refuses a layer that is not here.
pub(crate) const LAYERS: &[&str] = &[];
