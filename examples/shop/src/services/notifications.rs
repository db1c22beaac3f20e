//! Tells customers what has become of their orders: by a row, where others would send a mail.

use axum::Router;
use mamparo_core::BoxError;
use mamparo_postgres::sqlx;

use crate::common::bus::{Bus, Heard, Hears};
use crate::common::serve::Server;
use crate::common::settings::Place;
use crate::common::shop::Shop;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS notifications.sent (
    order_id text NOT NULL,
    what text NOT NULL,
    text text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
)";

#[derive(Clone)]
struct Notifications(Shop);

pub(super) async fn run(place: Place) -> Result<(), BoxError> {
    let server = Server::open(&place)?;
    let shop = Shop::open(&place, TABLES).await?;
    let bus = Bus::open(&shop)?;
    let readiness = bus.readiness()?;
    let work = bus.run(Notifications(shop), server.stop());
    server.run(Router::new(), readiness, work).await
}

impl Hears for Notifications {
    async fn hear(self, heard: Heard) -> Result<(), BoxError> {
        let text = match (&*heard.what, heard.body["reason"].as_str()) {
            ("order.confirmed", _) => "your order is on its way".to_owned(),
            ("payment.refunded", _) => "you have your money back".to_owned(),
            (_, reason) => format!("your order was cancelled: {}", reason.unwrap_or("?")),
        };
        let tell = (heard.order.clone(), heard.what.clone(), text);
        self.0
            .once(&heard, |tx| {
                let (order, what, text) = tell.clone();
                Box::pin(async move {
                    let insert =
                        "INSERT INTO notifications.sent (order_id, what, text) VALUES ($1, $2, $3)";
                    let insert = sqlx::query(insert).bind(order).bind(what).bind(text);
                    insert.execute(tx).await?;
                    Ok(Vec::new())
                })
            })
            .await
    }
}
