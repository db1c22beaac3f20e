//! RabbitMQ and PostgreSQL.

use mamparo_testkit::private::{PrivatePostgres, PrivateRabbit};

/// Whose broker and database are used; private ones are started where no URL is given.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Urls {
    /// A PostgreSQL to use, such as <postgres://shop@localhost/shop>; makes schemas in it.
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// A RabbitMQ to use, such as <amqp://guest:guest@localhost/%2f>; declares queues in it.
    #[arg(long, value_name = "URL")]
    broker: Option<String>,
}

/// Both, for as long as it is kept.
pub(crate) struct Ground {
    pub(crate) database: String,
    pub(crate) broker: String,
    /// The broker, if it is ours to stop.
    pub(crate) rabbit: Option<PrivateRabbit>,
    _postgres: Option<PrivatePostgres>,
}

impl Ground {
    pub(crate) async fn open(urls: Urls) -> Self {
        let postgres = async {
            match urls.database {
                Some(url) => (url, None),
                None => {
                    let own = PrivatePostgres::start().await;
                    (own.url(), Some(own))
                }
            }
        };
        let rabbit = async {
            match urls.broker {
                Some(url) => (url, None),
                None => {
                    let own = PrivateRabbit::start().await;
                    (own.url(), Some(own))
                }
            }
        };
        let ((database, postgres), (broker, rabbit)) = tokio::join!(postgres, rabbit);
        Self {
            database,
            broker,
            rabbit,
            _postgres: postgres,
        }
    }
}
