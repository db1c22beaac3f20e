//! What a client with the protecting layers does under each kind of trouble, over real sockets.
//!
//! | trouble | brought about by |
//! |---|---|
//! | none | the calls alone |
//! | near the limit | as many calls at once as the bulkhead has places, and half as many in its line |
//! | induced latency | a proxy that delays every byte past the attempt's timeout |
//! | loss and reset | a proxy that resets a share of the connections, then all of them |
//! | saturated pool | answers that take longer than the calls behind them can wait |
//! | partial or slow response | a proxy that ends bodies early, then one that lets bytes through too slowly |
//! | unreachable | a port that refuses, then an address that is silent |
//!
//! Whatever the trouble: nobody waits past the deadline, nothing works on for nobody, resends stay within their budget, and
//! while the dependency is degraded it is sent less than what callers ask for.

mod cases;
mod rig;
