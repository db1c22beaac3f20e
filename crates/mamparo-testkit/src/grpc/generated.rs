//! What `build.rs` made of `proto/echo.proto`.

#![expect(
    missing_docs,
    unused_qualifications,
    clippy::allow_attributes,
    clippy::doc_markdown,
    clippy::excessive_nesting,
    clippy::missing_errors_doc,
    clippy::too_many_lines,
    reason = "generated code keeps other rules"
)]

tonic::include_proto!("mamparo.test.v1");

/// The descriptors of the service, encoded, as reflection serves them.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/echo.bin"));
