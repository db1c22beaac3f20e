//! All resources as data.
