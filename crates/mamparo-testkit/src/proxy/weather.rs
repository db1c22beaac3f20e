//! Which fault a connection meets at the moment.

use super::fault::Fault;
use super::spread::Spread;
use crate::sync::lock;
use std::sync::Mutex;
use tokio::sync::watch;

/// What the test has switched to.
#[derive(Clone, Copy, Debug)]
struct Forecast {
    fault: Fault,
    share: f64,
}

/// Switches the fault of all connections.
#[derive(Debug)]
pub(super) struct Switch {
    forecast: watch::Sender<Forecast>,
    luck: Mutex<Spread>,
}

impl Switch {
    pub(super) fn new() -> Self {
        let calm = Forecast {
            fault: Fault::None,
            share: 1.0,
        };
        Self {
            forecast: watch::Sender::new(calm),
            luck: Mutex::default(),
        }
    }

    pub(super) fn set(&self, fault: Fault, share: f64) {
        self.forecast.send_replace(Forecast { fault, share });
    }

    /// The weather of one more connection; whether it is among the share that meets the fault is its own luck.
    pub(super) fn weather(&self) -> Weather {
        Weather {
            forecast: self.forecast.subscribe(),
            luck: lock(&self.luck).next(),
        }
    }
}

/// What one connection sees of the switch.
#[derive(Clone, Debug)]
pub(super) struct Weather {
    forecast: watch::Receiver<Forecast>,
    luck: f64,
}

/// The proxy is gone.
#[derive(Debug)]
pub(super) struct Gone;

impl Weather {
    /// The fault of the moment.
    pub(super) fn fault(&mut self) -> Fault {
        let Forecast { fault, share } = *self.forecast.borrow_and_update();
        if self.luck < share {
            fault
        } else {
            Fault::None
        }
    }

    /// Waits until the switch is used again.
    pub(super) async fn change(&mut self) -> Result<(), Gone> {
        self.forecast.changed().await.map_err(|_| Gone)
    }
}
