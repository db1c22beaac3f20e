//! What `build.rs` made of `proto/prices.proto`.

#![expect(
    unreachable_pub,
    unused_qualifications,
    clippy::allow_attributes,
    clippy::doc_markdown,
    clippy::excessive_nesting,
    clippy::too_many_lines,
    reason = "generated code keeps other rules"
)]

tonic::include_proto!("shop.v1");
