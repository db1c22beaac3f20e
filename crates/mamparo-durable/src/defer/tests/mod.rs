mod answers;
mod deferrals;
mod errors;
#[cfg(feature = "config")]
mod files;
mod settings;
mod support;
