//! The wire forms, vector by vector; the properties that hold for all of them stand in `properties.rs`.

mod absolute;
mod forms;
mod grpc;
mod properties;
mod set;
mod skew;
mod whole;
