//! The settings of the service that calls, and of what sends its requests again without our knowing.

use super::Field;
use super::dependency::field;
use super::field::Kind::{Count, Text, Texts};

pub(in crate::policy) const SERVICE: &[Field] = &[
    field(
        "name",
        Text,
        "the file's name",
        "What this service is called where another one's policies name it as a dependency.",
    ),
    field(
        "calls",
        Texts,
        "all of them",
        "The dependencies that are called while a request is served, and not in the background.",
    ),
];

pub(in crate::policy) const EXTERNAL_RETRIER: &[Field] = &[
    field(
        "name",
        Text,
        "external",
        "What it is: an SDK, a gateway, a mesh.",
    ),
    field(
        "attempts",
        Count(1, 100),
        "none",
        "How many attempts it makes of each, the original included; 1 says that it sends nothing again.",
    ),
    field(
        "calls",
        Texts,
        "all of them",
        "The dependencies that are called through it.",
    ),
];
