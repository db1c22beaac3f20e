//! Charges for an order once, whatever happens in between: its own row is written before the bank is asked, the order's id is the
//! bank's key, and a message that comes again asks the bank what it knows of that key.

use axum::Router;
use http::Request;
use mamparo::problem::Problem;
use mamparo_core::BoxError;
use mamparo_postgres::sqlx;
use mamparo_rabbitmq::Permanent;
use serde_json::json;

use super::bank::Charge;
use crate::common::bus::{Bus, Heard, Hears};
use crate::common::client::Dependency;
use crate::common::serve::Server;
use crate::common::settings::{Place, policies};
use crate::common::shop::Shop;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS payments.charges (
    order_id text PRIMARY KEY,
    cents bigint NOT NULL,
    state text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
)";

#[derive(Clone)]
struct Payments {
    shop: Shop,
    bank: Dependency,
}

pub(super) async fn run(place: Place) -> Result<(), BoxError> {
    let server = Server::open(&place)?;
    let shop = Shop::open(&place, TABLES).await?;
    let bank = Dependency::open(&policies(&place)?, "bank")?;
    let bus = Bus::open(&shop)?;
    let readiness = bus.readiness()?;
    let work = bus.run(Payments { shop, bank }, server.stop());
    server.run(Router::new(), readiness, work).await
}

impl Hears for Payments {
    /// What fails here, an open breaker too, sends the message to the retry queue.
    async fn hear(self, heard: Heard) -> Result<(), BoxError> {
        match &*heard.what {
            "stock.reserved" => self.pay(&heard).await,
            _ => self.undo(&heard).await,
        }
    }
}

impl Payments {
    async fn pay(&self, heard: &Heard) -> Result<(), BoxError> {
        let cents = heard.body["cents"].as_i64();
        let cents = cents.ok_or_else(|| Permanent::new("the field \"cents\" is missing"))?;
        let is_new = self.initiate(&heard.order, cents).await?;
        let charged = match &*self.state(&heard.order).await? {
            "INITIATED" if is_new => self.charge(&heard.order, cents).await?,
            // Whoever was here before may have died while the bank was at it.
            "INITIATED" => {
                self.is_known(&heard.order).await? || self.charge(&heard.order, cents).await?
            }
            "CANCELLED" => self.is_known(&heard.order).await?,
            _ => return Ok(()),
        };
        // The order may have been cancelled meanwhile.
        match &*self.state(&heard.order).await? {
            "CANCELLED" if charged => self.refund(heard).await,
            _ if charged => {
                self.turn(heard, &["INITIATED"], "CONFIRMED", "payment.confirmed")
                    .await
            }
            _ => {
                self.turn(heard, &["INITIATED"], "DECLINED", "payment.declined")
                    .await
            }
        }
    }

    async fn undo(&self, heard: &Heard) -> Result<(), BoxError> {
        let cancelled = "INSERT INTO payments.charges (order_id, cents, state) VALUES ($1, 0, 'CANCELLED')
            ON CONFLICT (order_id) DO UPDATE SET state = 'CANCELLED' WHERE charges.state = 'INITIATED'";
        let cancelled = sqlx::query(cancelled).bind(&heard.order);
        cancelled.execute(self.shop.workers()).await?;
        let state = self.state(&heard.order).await?;
        let paid = match &*state {
            "CONFIRMED" => true,
            "CANCELLED" => self.is_known(&heard.order).await?,
            _ => false,
        };
        match paid {
            true => self.refund(heard).await,
            false => Ok(()),
        }
    }

    /// Writes the row before anything is asked; tells whether there was none.
    async fn initiate(&self, order: &str, cents: i64) -> Result<bool, BoxError> {
        let insert = "INSERT INTO payments.charges (order_id, cents, state) VALUES ($1, $2, 'INITIATED') ON CONFLICT DO NOTHING";
        let insert = sqlx::query(insert).bind(order).bind(cents);
        let inserted = insert.execute(self.shop.workers()).await?;
        Ok(inserted.rows_affected() == 1)
    }

    async fn state(&self, order: &str) -> Result<String, BoxError> {
        let asked = "SELECT state FROM payments.charges WHERE order_id = $1";
        let state = sqlx::query_scalar(asked)
            .bind(order)
            .fetch_one(self.shop.workers());
        Ok(state.await?)
    }

    /// Takes on a state and tells of it, if the state is still one of those.
    async fn turn(
        &self,
        heard: &Heard,
        from: &'static [&'static str],
        to: &'static str,
        what: &'static str,
    ) -> Result<(), BoxError> {
        let event = self.shop.event(&heard.order, what, json!({}))?;
        self.shop.once(heard, |tx| {
            let (order, event) = (heard.order.clone(), event.clone());
            Box::pin(async move {
                let update = "UPDATE payments.charges SET state = $3 WHERE order_id = $1 AND state = ANY($2)";
                let update = sqlx::query(update).bind(order).bind(from).bind(to);
                let turned = update.execute(tx).await?.rows_affected() == 1;
                Ok(turned.then_some(event).into_iter().collect())
            })
        }).await
    }

    /// Asks the bank for the money; tells whether it declined, which is for good.
    async fn charge(&self, order: &str, cents: i64) -> Result<bool, BoxError> {
        let body = serde_json::to_vec(&Charge { cents })?;
        let answer = self.bank.send(keyed("/charges", order, body)?).await?;
        if answer.status() == 402 {
            return Ok(false);
        }
        Problem::check("bank", answer)?;
        Ok(true)
    }

    async fn is_known(&self, order: &str) -> Result<bool, BoxError> {
        let known: Option<Charge> = self.bank.get(&format!("/charges/{order}")).await?;
        Ok(known.is_some())
    }

    /// Gives the money back; asked twice, the bank does it once.
    async fn refund(&self, heard: &Heard) -> Result<(), BoxError> {
        let answer = self.bank.send(keyed("/refunds", &heard.order, Vec::new())?);
        Problem::check("bank", answer.await?)?;
        let from = &["CONFIRMED", "CANCELLED"];
        self.turn(heard, from, "REFUNDED", "payment.refunded").await
    }
}

/// The same key however often it is sent: the bank does it once.
fn keyed(path: &str, order: &str, body: Vec<u8>) -> Result<Request<Vec<u8>>, http::Error> {
    Request::post(path)
        .header("content-type", "application/json")
        .header("idempotency-key", format!("\"{order}\""))
        .body(body)
}
