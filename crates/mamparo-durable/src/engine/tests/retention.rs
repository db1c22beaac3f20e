use std::sync::Arc;
use std::time::Duration;

use super::support::{Heard, MINUTE, Paused, Sent, id, on, payment};
use crate::engine::Engine;
use crate::memory::Memory;

const MANY: u64 = 450;

/// An engine that keeps what ended for so long, with many that have ended and one that has not.
async fn ended(keep: Option<Duration>, heard: &Arc<Heard>) -> Engine {
    let clock = Paused::new();
    let engine = on(&Memory::new(clock), clock)
        .listener(heard.clone())
        .keep(keep);
    let engine = engine.build().unwrap();
    for number in 0..MANY {
        let name = format!("p{number}");
        engine.begin(payment(&name).sent()).await.unwrap();
        engine.resolve(&id(&name), None).await.unwrap();
    }
    engine.begin(payment("lives").sent()).await.unwrap();
    engine
}

async fn stored(engine: &Engine) -> u64 {
    let census = engine.status().await.unwrap().census;
    census.counts.iter().map(|count| count.transactions).sum()
}

#[tokio::test(start_paused = true)]
async fn what_ended_is_kept_for_as_long_as_said_and_then_forgotten() {
    let heard = Arc::new(Heard::default());
    let engine = ended(Some(MINUTE * 30), &heard).await;
    let running = engine.run(Sent::default().provider());
    tokio::time::sleep(MINUTE * 29).await;
    assert_eq!(stored(&engine).await, MANY + 1);
    // It looks twice in that time, however late it is.
    tokio::time::sleep(MINUTE * 38).await;
    assert_eq!(stored(&engine).await, 1);
    assert_eq!(*heard.forgotten.lock().unwrap(), MANY);
    assert!(engine.load(&id("lives")).await.unwrap().is_some());
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_forgotten_where_it_is_kept_for_ever() {
    let heard = Arc::new(Heard::default());
    let engine = ended(None, &heard).await;
    let running = engine.run(Sent::default().provider());
    tokio::time::sleep(MINUTE * 180).await;
    assert_eq!(stored(&engine).await, MANY + 1);
    running.stop().await.unwrap();
}

#[test]
fn a_time_in_which_it_may_still_be_under_way_is_refused() {
    let clock = Paused::new();
    let short = on(&Memory::new(clock), clock).keep(Duration::from_secs(59));
    let says = short.build().unwrap_err().to_string();
    assert!(says.starts_with("keep = 59s is refused"), "{says}");
}
