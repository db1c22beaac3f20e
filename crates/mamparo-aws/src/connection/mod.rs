//! How the services are reached: settings, the three clients, and what their errors mean.

mod aws;
mod error;
mod settings;

pub use aws::Aws;
pub(crate) use error::{Service, trouble};
pub use settings::{Settings, SettingsBuilder};
