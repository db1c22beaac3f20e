//! The server's own settings: the `[server]` table.

use std::fmt::Write;

use http::{HeaderName, StatusCode};
use mamparo_core::InvalidSetting;
use mamparo_core::grpc::Grpc;
use mamparo_core::http::{Http, QuotaPolicy};

use super::schema::{SERVER, checked};
use super::server_keys::idempotency;
use super::source::overlay;
use super::tree::{At, Node, Origin, Table, Value};
use super::view::View;
use super::{Effective, Problem, build};
use crate::bulkhead::BulkheadPolicy;
use crate::caller::{CallerKey, TrustedProxies};
use crate::idempotency::IdempotencyPolicy;
use crate::load_shed::LoadShedPolicy;
use crate::rate_limit::RateLimitPolicy;
use crate::rejection::RejectionPolicy;
use crate::serve::{self, ServerLayers, StopPolicy};
use crate::server_deadline::ServerDeadlinePolicy;

/// The server's own policy, as the `[server]` table says; by default that of [`serve::http`].
///
/// It is as it was loaded: a server that runs does not follow a reload.
///
/// ```
/// use mamparo::policy::{Format, Policies};
/// use std::time::Duration;
///
/// let document = r#"
/// [server]
/// max_deadline = "30s"
/// rate_limit = { count = 600, period = "1m", trusted_proxies = ["10.0.0.0/8"] }
/// stop = { delay = "5s" }
/// "#;
/// let policies = Policies::loader().text("policies.toml", document, Format::Toml).load()?;
/// let server = policies.server();
/// assert_eq!(server.stop().delay(), Duration::from_secs(5));
/// let layers = server.http(); // for axum's `Router::layer`
/// # let _ = layers;
/// # Ok::<(), mamparo::policy::InvalidPolicies>(())
/// ```
#[derive(Clone, Debug)]
pub struct ServerPolicy {
    view: View,
    built: Built,
}

#[derive(Clone, Debug)]
struct Built {
    deadline: ServerDeadlinePolicy,
    rejection: RejectionPolicy,
    rate_limit: Option<RateLimit>,
    load_shed: LoadShedPolicy,
    bulkhead: BulkheadPolicy,
    idempotency: Option<IdempotencyPolicy>,
    stop: StopPolicy,
}

#[derive(Clone, Debug)]
struct RateLimit {
    policy: RateLimitPolicy,
    key: CallerKey,
    told: Option<QuotaPolicy>,
}

/// What a layer refuses, and the part of the table that it stands in.
type Refused = (InvalidSetting, &'static str);

impl ServerPolicy {
    /// Returns the layers of a server of HTTP's: all that the table says but the idempotency, whose store is the program's own.
    #[must_use]
    pub fn http(&self) -> ServerLayers<Http> {
        self.around(serve::http())
    }

    /// Returns the layers of a server of gRPC's.
    #[must_use]
    pub fn grpc(&self) -> ServerLayers<Grpc> {
        self.around(serve::grpc())
    }

    fn around<P: Clone>(&self, layers: ServerLayers<P>) -> ServerLayers<P> {
        let built = self.built.clone();
        let layers = layers
            .deadline(built.deadline)
            .rejection(built.rejection)
            .load_shed(built.load_shed)
            .bulkhead(built.bulkhead);
        match built.rate_limit {
            Some(limit) => layers
                .rate_limit(limit.policy, limit.key)
                .rate_limit_told_as(limit.told),
            None => layers,
        }
    }

    /// Returns how long the server takes to stop.
    #[must_use]
    pub const fn stop(&self) -> StopPolicy {
        self.built.stop
    }

    /// Returns how idempotency keys are recognised; none where `idempotency` is off.
    ///
    /// The store is the program's own: `layers.idempotency(IdempotencyLayer::new(store, policy))`.
    #[must_use]
    pub const fn idempotency(&self) -> Option<&IdempotencyPolicy> {
        self.built.idempotency.as_ref()
    }

    /// Tells whether somebody wrote the table.
    #[must_use]
    pub const fn is_written(&self) -> bool {
        self.view.origin.is_written()
    }

    /// Returns every setting with the value that holds, and where it comes from.
    #[must_use]
    pub fn effective(&self) -> Vec<Effective> {
        self.view.effective_of(SERVER)
    }

    /// Says what the policy does: each value with its origin, in the order of the layers.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = "the server's own layers, outermost first:\n".to_owned();
        for setting in self.effective() {
            let Effective {
                path,
                value,
                origin,
            } = setting;
            // Writing to a string does not fail.
            let _infallible = writeln!(text, "      {path} = {value}  ({origin})");
        }
        text
    }

    /// Warns if it is another than the one by which a server runs.
    pub(super) fn changed_since(&self, running: &Self) -> Option<Problem> {
        let changed = !self.view.table.says_same(&running.view.table);
        changed.then(|| {
            Problem::warning(
                "needs-restart",
                &self.view.origin,
                "server",
                "it has changed, and a server that runs does not follow a reload",
                "restart the program for it to hold",
            )
        })
    }

    /// Reads what all files say together, the later over the earlier, and the environment over them.
    pub(super) fn of(
        documents: &[Table],
        environment: impl IntoIterator<Item = (String, String)>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut all = Table::default();
        let mut origin = Origin::Default;
        for document in documents {
            let Some(node) = document.get("server") else {
                continue;
            };
            match node.table() {
                Some(table) => {
                    origin = node.origin();
                    all = table.over(&all);
                }
                None => problems.push(not_a_table(node)),
            }
        }
        let mut server = Table::default();
        let (value, at) = (Value::Table(all), At::environment("MAMPARO__SERVER"));
        server.set("server", Node { value, at });
        overlay(&mut server, environment);
        let table = server.get("server").and_then(Node::table).cloned();
        let table = table.unwrap_or_default();
        // Where no file has it, a variable may.
        let first = table.iter().next().map(|(_, node)| node.origin());
        let origin = Some(origin).filter(Origin::is_written).or(first);
        let view = View {
            name: "server".to_owned(),
            table,
            origin: origin.unwrap_or(Origin::Default),
            is_read: true,
        };
        let before = problems.len();
        checked(&view.table, SERVER, "server", problems);
        if problems.len() > before {
            return Self::default();
        }
        match build(&view) {
            Ok(built) => Self { view, built },
            Err((error, part)) => {
                problems.push(refused(&view, &error, part));
                Self::default()
            }
        }
    }
}

impl Default for ServerPolicy {
    fn default() -> Self {
        Self {
            view: View {
                name: "server".to_owned(),
                table: Table::default(),
                origin: Origin::Default,
                is_read: true,
            },
            built: Built {
                deadline: ServerDeadlinePolicy::default(),
                rejection: RejectionPolicy::default(),
                rate_limit: None,
                load_shed: LoadShedPolicy::off(),
                bulkhead: BulkheadPolicy::off(),
                idempotency: None,
                stop: StopPolicy::default(),
            },
        }
    }
}

fn build(view: &View) -> Result<Built, Refused> {
    let of = |part| move |error| (error, part);
    let bulkhead = match view.is_on("bulkhead", false) {
        true => build::bulkhead(view).map_err(of("bulkhead"))?,
        false => BulkheadPolicy::off(),
    };
    Ok(Built {
        deadline: deadline(view).map_err(of("max_deadline"))?,
        rejection: rejection(view).map_err(of("exhausted_header"))?,
        rate_limit: match view.is_on("rate_limit", false) {
            true => Some(rate_limit(view).map_err(of("rate_limit"))?),
            false => None,
        },
        load_shed: build::load_shed(view).map_err(of("load_shed"))?,
        bulkhead,
        idempotency: idempotency(view).map_err(of("idempotency"))?,
        stop: stop(view).map_err(of("stop"))?,
    })
}

fn deadline(view: &View) -> Result<ServerDeadlinePolicy, InvalidSetting> {
    let mut builder = ServerDeadlinePolicy::builder();
    if let Some(maximum) = view.duration("max_deadline") {
        builder = builder.maximum(maximum);
    }
    if let Some(limit) = view.duration("default_deadline") {
        builder = builder.default_limit(limit);
    }
    if view.text("malformed_deadline") == Some("refuse") {
        builder = builder.refuse_malformed();
    }
    builder.build()
}

fn rejection(view: &View) -> Result<RejectionPolicy, InvalidSetting> {
    let mut builder = RejectionPolicy::builder();
    let status = view.count("timeout_status");
    if let Some(status) = status.and_then(|status| u16::try_from(status).ok())
        && let Ok(status) = StatusCode::from_u16(status)
    {
        builder = builder.timeout_status(status);
    }
    if let Some(share) = view.number("retry_after_jitter") {
        builder = builder.retry_after_jitter(share);
    }
    if view.flag("hide_dependencies") == Some(true) {
        builder = builder.hide_dependencies();
    }
    match view.text("exhausted_header") {
        Some("off") => builder = builder.exhausted_header(None),
        Some(name) => builder = builder.exhausted_header(header("exhausted_header", name)?),
        None => {}
    }
    builder.build()
}

pub(super) fn header(setting: &'static str, name: &str) -> Result<HeaderName, InvalidSetting> {
    let parsed = name.parse::<HeaderName>();
    parsed.map_err(|_| InvalidSetting::new(setting, name, "must be the name of a header"))
}

fn rate_limit(view: &View) -> Result<RateLimit, InvalidSetting> {
    let Some(count) = view.count_u32("rate_limit.count") else {
        let reason = "must be written: how many requests of a caller pass in a period";
        return Err(InvalidSetting::new("count", "none", reason));
    };
    let second = std::time::Duration::from_secs(1);
    let period = view.duration_or("rate_limit.period", second);
    let mut builder = RateLimitPolicy::per(period, count);
    if let Some(burst) = view.count_u32("rate_limit.burst") {
        builder = builder.burst(burst);
    }
    if let Some(keys) = view.count_u32("rate_limit.max_keys") {
        builder = builder.max_keys(keys as usize);
    }
    let policy = builder.build()?;
    let quota = policy.quota(view.text("rate_limit.told_as").unwrap_or("rate-limit"))?;
    Ok(RateLimit {
        policy,
        key: key(view)?,
        told: match view.text("rate_limit.fields") {
            Some("off") => None,
            Some("legacy") => Some(quota.legacy_only()),
            Some("both") => Some(quota.with_legacy()),
            _ => Some(quota),
        },
    })
}

fn key(view: &View) -> Result<CallerKey, InvalidSetting> {
    Ok(match view.text("rate_limit.key") {
        Some("all") => CallerKey::nothing(),
        Some("principal") => CallerKey::principal(),
        Some("header") => {
            let name = view.text("rate_limit.header").unwrap_or_default();
            CallerKey::header(header("header", name)?)
        }
        _ => CallerKey::address(proxies(view)?),
    })
}

fn proxies(view: &View) -> Result<TrustedProxies, InvalidSetting> {
    let networks = view.texts("rate_limit.trusted_proxies");
    match view.text("rate_limit.forwarded") {
        Some("forwarded") => TrustedProxies::forwarded(networks),
        _ => TrustedProxies::x_forwarded_for(networks),
    }
}

fn stop(view: &View) -> Result<StopPolicy, InvalidSetting> {
    let mut builder = StopPolicy::builder();
    if let Some(delay) = view.duration("stop.delay") {
        builder = builder.delay(delay);
    }
    if let Some(grace) = view.duration("stop.grace") {
        builder = builder.grace(grace);
    }
    if let Some(flush) = view.duration("stop.flush") {
        builder = builder.flush(flush);
    }
    builder.build()
}

#[cold]
fn refused(view: &View, error: &InvalidSetting, part: &str) -> Problem {
    let inner = super::schema::join(part, error.setting());
    let paths = [inner.as_str(), error.setting(), part];
    let path = paths.into_iter().find(|path| view.is_written(path));
    let path = path.unwrap_or(part);
    let origin = match view.is_written(path) {
        true => view.origin(path),
        false => view.origin.clone(),
    };
    let remedy = "mend it, or leave it out";
    let message = error.to_string();
    Problem::error(
        "refused-value",
        &origin,
        format!("server.{path}"),
        message,
        remedy,
    )
}

#[cold]
fn not_a_table(node: &Node) -> Problem {
    let message = format!("it is {}, and should be a table", node.value.what());
    Problem::error(
        "bad-value",
        &node.origin(),
        "server",
        message,
        "write [server]",
    )
}
