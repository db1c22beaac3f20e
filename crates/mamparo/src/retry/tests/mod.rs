//! A retry's tests, by what its caller asks: what is sent again and when, and what is known of what was sent.

mod attempts;
mod cast;
mod grpc;
mod unsent;
