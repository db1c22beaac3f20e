//! The store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mamparo::idempotency::{
    Begin, Begun, IdempotencyStore, KeyId, Lease, OnExpiry, Record, SealedAnswer, StoreError,
    Written,
};

use super::row::{begun, found, millis, written};
use super::scripts::Scripts;
use crate::RedisServer;
use crate::server::Hex;

/// Keeps idempotency keys in Redis, for all replicas of a server; clones share it.
///
/// Each step is one atomic script on one key. Redis forgets keys by itself: nobody has to sweep. All times are by the Redis server's clock.
/// How much is promised is for how that server writes to its disk: see the [crate's documentation](crate).
#[derive(Clone)]
pub struct RedisIdempotency {
    server: RedisServer,
    scripts: Arc<Scripts>,
}

impl RedisIdempotency {
    /// Keeps keys on that server.
    #[must_use]
    pub fn new(server: RedisServer) -> Self {
        let scripts = Arc::new(Scripts::new());
        Self { server, scripts }
    }

    fn key(&self, id: KeyId) -> String {
        self.server
            .key(format_args!("idempotency:{}", Hex(id.as_bytes())))
    }
}

impl IdempotencyStore for RedisIdempotency {
    async fn begin(&self, begin: &Begin) -> Result<Begun, StoreError> {
        let mut script = self.scripts.begin.key(self.key(begin.id));
        script
            .arg(begin.fence.as_bytes())
            .arg(begin.fingerprint.as_bytes())
            .arg(millis(begin.term))
            .arg(millis(begin.retention))
            .arg(u8::from(begin.on_expiry == OnExpiry::RunAgain));
        begun(self.server.run(&script).await?)
    }

    async fn find(&self, id: KeyId) -> Result<Option<Record>, StoreError> {
        let script = self.scripts.find.key(self.key(id));
        found(self.server.run(&script).await?)
    }

    async fn renew(&self, lease: Lease, term: Duration) -> Result<Written, StoreError> {
        let mut script = self.scripts.renew.key(self.key(lease.id));
        script.arg(lease.fence.as_bytes()).arg(millis(term));
        written(&self.server.run(&script).await?)
    }

    async fn complete(
        &self,
        lease: Lease,
        answer: &SealedAnswer,
        retention: Duration,
    ) -> Result<Written, StoreError> {
        let mut script = self.scripts.complete.key(self.key(lease.id));
        script
            .arg(lease.fence.as_bytes())
            .arg(answer.as_bytes())
            .arg(millis(retention));
        written(&self.server.run(&script).await?)
    }

    async fn release(&self, lease: Lease) -> Result<Written, StoreError> {
        let mut script = self.scripts.release.key(self.key(lease.id));
        script.arg(lease.fence.as_bytes());
        written(&self.server.run(&script).await?)
    }

    /// Does nothing, since Redis forgets keys by itself.
    async fn sweep(&self, _: usize) -> Result<usize, StoreError> {
        Ok(0)
    }
}

impl fmt::Debug for RedisIdempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisIdempotency")
            .field(&self.server)
            .finish()
    }
}
