//! What happens to messages that were taken.

use mamparo_durable::backend::Receipt;
use mamparo_durable::machine::{Label, Utc};
use sqlx::postgres::PgConnection;
use sqlx::{Error, query};

use super::statements;

/// Messages and the leases under which they were taken: what is under another lease by now is left alone.
#[derive(Default)]
pub(super) struct ReceiptRows {
    number: Vec<i64>,
    lease: Vec<i64>,
}

impl ReceiptRows {
    pub(super) fn push(&mut self, receipt: &Receipt) {
        // What is no number of ours matches nothing.
        self.number
            .push(i64::try_from(receipt.message).unwrap_or(-1));
        self.lease.push(i64::try_from(receipt.lease).unwrap_or(-1));
    }

    fn is_empty(&self) -> bool {
        self.number.is_empty()
    }

    pub(super) async fn acknowledge(self, connection: &mut PgConnection) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        let statement = query(statements::ACKNOWLEDGE)
            .bind(self.number)
            .bind(self.lease);
        statement.execute(connection).await.map(drop)
    }
}

/// Messages that are given back.
#[derive(Default)]
pub(super) struct ReleaseRows {
    receipts: ReceiptRows,
    ready_at: Vec<i64>,
    /// 1 for a delivery that does not count.
    unspent: Vec<i64>,
}

impl ReleaseRows {
    pub(super) fn push(&mut self, receipt: &Receipt, ready_at: Utc, spent: bool) {
        self.receipts.push(receipt);
        self.ready_at.push(ready_at.millis());
        self.unspent.push(i64::from(!spent));
    }

    pub(super) async fn write(self, connection: &mut PgConnection) -> Result<(), Error> {
        if self.receipts.is_empty() {
            return Ok(());
        }
        let ReceiptRows { number, lease } = self.receipts;
        let statement = query(statements::RELEASE).bind(number).bind(lease);
        statement
            .bind(self.ready_at)
            .bind(self.unspent)
            .execute(connection)
            .await
            .map(drop)
    }
}

/// Messages whose leases are held longer.
#[derive(Default)]
pub(super) struct ExtendRows {
    receipts: ReceiptRows,
    until: Vec<i64>,
}

impl ExtendRows {
    pub(super) fn push(&mut self, receipt: &Receipt, until: Utc) {
        self.receipts.push(receipt);
        self.until.push(until.millis());
    }

    pub(super) async fn write(self, connection: &mut PgConnection, now: Utc) -> Result<(), Error> {
        if self.receipts.is_empty() {
            return Ok(());
        }
        let ReceiptRows { number, lease } = self.receipts;
        let statement = query(statements::EXTEND)
            .bind(number)
            .bind(lease)
            .bind(self.until);
        statement
            .bind(now.millis())
            .execute(connection)
            .await
            .map(drop)
    }
}

/// Messages that become dead letters.
#[derive(Default)]
pub(super) struct BuryRows {
    receipts: ReceiptRows,
    why: Vec<String>,
    /// 1 for a delivery that nobody saw.
    unspent: Vec<i64>,
}

impl BuryRows {
    pub(super) fn push(&mut self, receipt: &Receipt, why: &Label, spent: bool) {
        self.receipts.push(receipt);
        self.unspent.push(i64::from(!spent));
        self.why.push(why.as_str().to_owned());
    }

    pub(super) async fn write(self, connection: &mut PgConnection, now: Utc) -> Result<(), Error> {
        if self.receipts.is_empty() {
            return Ok(());
        }
        let ReceiptRows { number, lease } = self.receipts;
        let statement = query(statements::BURY)
            .bind(number)
            .bind(lease)
            .bind(self.why);
        statement
            .bind(now.millis())
            .bind(self.unspent)
            .execute(connection)
            .await
            .map(drop)
    }
}
