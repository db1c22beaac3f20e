//! `shop up`: all of it, until Ctrl-C.

use std::pin::pin;

use mamparo_core::BoxError;

use crate::services::NAMES;
use crate::town::{Ground, Hurry, Town, Urls};

#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    urls: Urls,
    /// So many times faster go sagas, retry queues and open breakers.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=60))]
    time_factor: u32,
}

#[expect(clippy::print_stdout, reason = "it tells where everything is")]
pub(crate) async fn run(options: Options) -> Result<(), BoxError> {
    println!("starting");
    let hurry = Hurry {
        factor: options.time_factor,
        reconcile_every: None,
    };
    let mut told = pin!(mamparo::serve::termination()?);
    let building = async { Town::build(Ground::open(options.urls).await, hurry).await };
    let mut town = tokio::select! {
        town = building => town?,
        () = &mut told => return Ok(()),
    };
    println!("PostgreSQL     {}", town.ground.database);
    println!("RabbitMQ       {}", town.ground.broker);
    for name in NAMES {
        println!("{name:<14} {}   /metrics /health/ready", town.url(name));
    }
    println!("logs, spans    {}", town.folder().display());
    let gateway = town.url("gateway");
    println!(
        "\ncurl -s {gateway}/orders -H 'content-type: application/json' -H 'x-client: me' -H 'idempotency-key: \"1\"' \\"
    );
    println!("  -d '{{\"customer\":\"ada\",\"product\":\"book\",\"quantity\":1}}'");
    println!("curl -s '{gateway}/orders?customer=ada' -H 'x-client: me'\n\nCtrl-C stops it");
    tokio::select! {
        () = told => {}
        ended = town.ended() => return Err(format!("{} has ended, see its log in {}", ended?, town.keep().display()).into()),
    }
    println!("stopping");
    town.stop().await
}
