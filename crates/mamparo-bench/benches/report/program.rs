//! What the programs begin with that measure over a store, a broker or a socket.

use std::fmt::Debug;
use std::str::FromStr;

use tokio::runtime::{Builder, Runtime};

/// With two threads, the same on every machine.
pub(crate) fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(2).enable_all();
    builder.build().unwrap()
}

/// A size from the environment.
pub(crate) fn size<N: FromStr<Err: Debug>>(name: &str, default: N) -> N {
    let asked = std::env::var(format!("MAMPARO_BENCH_{name}"));
    asked.map_or(default, |asked| asked.parse().unwrap())
}
