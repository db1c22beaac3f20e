mod answers;
mod deferrals;
mod errors;
mod settings;
mod support;
