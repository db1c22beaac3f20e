//! A client of the shop: pages and orders, and then a few operations that go wrong in a way of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};
use mamparo_core::clock::{self, Instant};
use mamparo_core::{BoxError, RetryError};
use tokio::task::JoinSet;

use super::cast::{BROKEN_ITEM, Cast};
use super::client::{Reqwest, request, send, stack, via_reqwest};
use super::notes::BLOCKING;
use super::pricing::{Watched, watch};
use super::shop::Shop;
use crate::telemetry::Pipeline;

/// As many requests as are under way at once.
const AT_ONCE: usize = 8;

/// One request in so many is an order.
const ORDERS: u32 = 8;

/// How long a customer waits in the end.
const CUSTOMER_WAITS: Duration = Duration::from_secs(3);

/// How long the one waits who calls what never answers.
const IMPATIENT_WAITS: Duration = Duration::from_millis(150);

/// What the client saw.
#[derive(Debug)]
pub(super) struct Seen {
    /// The orders' keys, and how each was answered; none without an answer.
    pub(super) orders: Vec<(String, Option<StatusCode>)>,
    pub(super) pages: u32,
    pub(super) pages_answered: u32,
    pub(super) broken_page: Option<StatusCode>,
    /// When the impatient one gave up.
    pub(super) gave_up: Instant,
    pub(super) mail: Mail,
    /// How the shop answered what something costs.
    pub(super) quote: Option<StatusCode>,
    pub(super) watched: Watched,
}

/// How the mail went that nobody knows whether it was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mail {
    pub(super) attempts: u32,
    pub(super) indeterminate: bool,
}

/// Drives so many requests, and then the others.
pub(super) async fn drive(
    telemetry: &Pipeline,
    shop: &Shop,
    cast: &Cast,
    requests: u32,
) -> Result<Seen, BoxError> {
    let customer = stack(telemetry, "shop", CUSTOMER_WAITS, CUSTOMER_WAITS)?;
    let customer = via_reqwest(&customer)?;
    let (orders, (pages, pages_answered)) = crowd(&customer, shop, requests).await?;
    let broken = shop.url(&format!("/pages/{BROKEN_ITEM}"));
    let broken = send(customer.clone(), request(Method::GET, &broken, None)?).await;
    let quote = request(Method::GET, &shop.url("/quotes/7"), None)?;
    let quote = send(customer, quote).await.ok();
    Ok(Seen {
        quote: quote.map(|answer| answer.status()),
        watched: watch(telemetry, &cast.pricing).await?,
        orders,
        pages,
        pages_answered,
        broken_page: broken.ok().map(|answer| answer.status()),
        gave_up: give_up(telemetry, shop).await?,
        mail: mail(telemetry, cast).await?,
    })
}

type Orders = Vec<(String, Option<StatusCode>)>;

/// Several customers at once, who share what there is to ask for.
async fn crowd(
    customer: &Reqwest,
    shop: &Shop,
    requests: u32,
) -> Result<(Orders, (u32, u32)), BoxError> {
    let next = Arc::new(AtomicU32::new(0));
    let (pages_url, orders_url) = (shop.url("/pages"), shop.url("/orders"));
    let mut customers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (customer, next) = (customer.clone(), Arc::clone(&next));
        let (pages_url, orders_url) = (pages_url.clone(), orders_url.clone());
        customers.spawn(async move {
            let (mut orders, mut pages) = (Orders::new(), (0, 0));
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= requests {
                    return Ok::<_, BoxError>((orders, pages));
                }
                if number % ORDERS == 0 {
                    let key = format!("\"order-{number}\"");
                    let order = request(Method::POST, &orders_url, Some(&key))?;
                    let status = send(customer.clone(), order).await.ok();
                    orders.push((key, status.map(|answer| answer.status())));
                } else {
                    let page = request(Method::GET, &format!("{pages_url}/{number}"), None)?;
                    let answer = send(customer.clone(), page).await;
                    pages.0 += 1;
                    pages.1 += u32::from(answer.is_ok_and(|answer| answer.status().is_success()));
                }
            }
        });
    }
    let (mut orders, mut pages) = (Orders::new(), (0, 0));
    while let Some(done) = customers.join_next().await {
        let (more, (asked, answered)) = done??;
        orders.extend(more);
        pages = (pages.0 + asked, pages.1 + answered);
    }
    Ok((orders, pages))
}

/// Calls what never answers, and returns when it had enough of that; then calls what answers too late.
async fn give_up(telemetry: &Pipeline, shop: &Shop) -> Result<Instant, BoxError> {
    let impatient = stack(telemetry, "shop", IMPATIENT_WAITS, IMPATIENT_WAITS)?;
    let impatient = via_reqwest(&impatient)?;
    let forever = request(Method::GET, &shop.url("/forever"), None)?;
    // That both fail is the point.
    drop(send(impatient.clone(), forever).await);
    let gave_up = clock::now();
    let blocking = request(Method::GET, &shop.url(BLOCKING), None)?;
    drop(send(impatient, blocking).await);
    Ok(gave_up)
}

/// Sends a mail without a key, to a server that loses its answer.
async fn mail(telemetry: &Pipeline, cast: &Cast) -> Result<Mail, BoxError> {
    let mailer = stack(telemetry, "mailer", CUSTOMER_WAITS, CUSTOMER_WAITS)?;
    let mail = request(Method::POST, &cast.mailer.url("/mails"), None)?;
    Ok(match send(via_reqwest(&mailer)?, mail).await {
        Ok(_) => Mail::default(),
        Err(error) => RetryError::of(&*error).map_or_else(Mail::default, |error| Mail {
            attempts: error.ending().attempts(),
            indeterminate: error.ending().is_indeterminate(),
        }),
    })
}
