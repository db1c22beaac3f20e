//! A proxy before the local server that refuses what the services refuse, and fails as they may fail.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use mamparo_core::clock::SystemClock;
use mamparo_durable::machine::Utc;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Makes other requests fail than by default.
const SEED: &str = "MAMPARO_WIRE_SEED";

/// As long as a service that hangs says nothing.
const HANGS: Duration = Duration::from_secs(5);

/// What becomes of a request.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// It is refused with this status, code and words.
    Refuse(u16, &'static str, &'static str),
    /// It is done, and nobody hears of it.
    DoneUnheard,
    /// Of a batch, every other entry is not done.
    InPart,
    /// It is done twice.
    Twice,
}

impl Act {
    pub(super) const THROTTLED: Self = Self::Refuse(400, "ThrottlingException", "Rate exceeded");
    pub(super) const BROKEN: Self = Self::Refuse(503, "ServiceUnavailable", "try again");
}

/// What happens to the next requests of an operation.
struct Rule {
    operation: &'static str,
    /// So many pass before.
    after: usize,
    times: usize,
    act: Act,
}

struct Inner {
    to: SocketAddr,
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<String>>,
    /// What it has refused by itself.
    refused: Mutex<Vec<String>>,
    /// Fails at random once there is one.
    weather: Mutex<Option<fastrand::Rng>>,
}

/// The proxy, until it is dropped.
pub(super) struct Strict {
    address: SocketAddr,
    inner: Arc<Inner>,
    task: JoinHandle<()>,
}

impl Strict {
    pub(super) async fn before(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            to,
            rules: Mutex::default(),
            seen: Mutex::default(),
            refused: Mutex::default(),
            weather: Mutex::default(),
        });
        let serves = Arc::clone(&inner);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let inner = Arc::clone(&serves);
                tokio::spawn(async move {
                    let service = service_fn(|request| Arc::clone(&inner).answer(request));
                    let http = hyper::server::conn::http1::Builder::new();
                    // A client that goes away is no matter.
                    drop(http.serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Self {
            address,
            inner,
            task,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Does this to the next requests of an operation.
    pub(super) fn next(&self, operation: &'static str, times: usize, act: Act) {
        self.later(operation, 0, times, act);
    }

    /// Does this to requests of an operation, after some have passed.
    pub(super) fn later(&self, operation: &'static str, after: usize, times: usize, act: Act) {
        let rule = Rule {
            operation,
            after,
            times,
            act,
        };
        lock(&self.inner.rules).push(rule);
    }

    /// Throttles, breaks and does in part one request in twelve from now on.
    pub(super) fn weather(&self) {
        let seed = std::env::var(SEED).map_or(0, |text| text.parse().unwrap());
        println!("{SEED}={seed}");
        *lock(&self.inner.weather) = Some(fastrand::Rng::with_seed(seed));
    }

    /// How often an operation was asked for.
    pub(super) fn count(&self, operation: &str) -> usize {
        lock(&self.inner.seen)
            .iter()
            .filter(|it| *it == operation)
            .count()
    }

    /// How many requests there were.
    pub(super) fn all(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.inner.seen))
    }

    /// What a real service would have refused.
    pub(super) fn refused(&self) -> Vec<String> {
        lock(&self.inner.refused).clone()
    }
}

impl Drop for Strict {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request, read.
struct Asked {
    operation: String,
    head: hyper::http::request::Parts,
    body: Bytes,
}

type Answer = Response<Full<Bytes>>;

impl Inner {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer, std::io::Error> {
        let (head, body) = request.into_parts();
        let body = body
            .collect()
            .await
            .map_err(std::io::Error::other)?
            .to_bytes();
        let asked = Asked {
            operation: operation(&head),
            head,
            body,
        };
        lock(&self.seen).push(asked.operation.clone());
        if let Some(why) = self.objection(&asked).await {
            lock(&self.refused).push(why.clone());
            return Ok(refuse(400, "ValidationException", &why));
        }
        match self.act(&asked.operation) {
            None => self.forward(&asked).await,
            Some(Act::Refuse(status, code, words)) => Ok(refuse(status, code, words)),
            Some(Act::DoneUnheard) => {
                self.forward(&asked).await?;
                tokio::time::sleep(HANGS).await;
                Err(std::io::Error::other("it hangs"))
            }
            Some(Act::InPart) => self.in_part(asked).await,
            Some(Act::Twice) => {
                self.forward(&asked).await?;
                self.forward(&asked).await
            }
        }
    }

    fn act(&self, operation: &str) -> Option<Act> {
        if let Some(rng) = &mut *lock(&self.weather) {
            let batch = operation.ends_with("Batch");
            return match rng.u32(..36) {
                0 => Some(Act::THROTTLED),
                1 => Some(Act::BROKEN),
                2 if batch => Some(Act::InPart),
                _ => None,
            };
        }
        let mut rules = lock(&self.rules);
        let rule = rules
            .iter_mut()
            .find(|rule| rule.operation == operation && rule.times > 0)?;
        if rule.after > 0 {
            rule.after -= 1;
            return None;
        }
        rule.times -= 1;
        Some(rule.act.clone())
    }

    /// What a service would say that the local one does not.
    async fn objection(&self, asked: &Asked) -> Option<String> {
        match asked.operation.as_str() {
            "CreateSchedule" => schedule(asked),
            "SendMessageBatch" | "DeleteMessageBatch" | "ChangeMessageVisibilityBatch" => {
                batch(asked)
            }
            _ => None,
        }
    }

    async fn forward(&self, asked: &Asked) -> Result<Answer, std::io::Error> {
        let stream = TcpStream::connect(self.to).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        let mut request = Request::new(Full::new(asked.body.clone()));
        *request.method_mut() = asked.head.method.clone();
        *request.uri_mut() = asked.head.uri.clone();
        *request.headers_mut() = asked.head.headers.clone();
        request.headers_mut().remove("content-length");
        let answer = sender
            .send_request(request)
            .await
            .map_err(std::io::Error::other)?;
        let (mut head, body) = answer.into_parts();
        let body = body
            .collect()
            .await
            .map_err(std::io::Error::other)?
            .to_bytes();
        head.headers.remove("connection");
        head.headers.remove("transfer-encoding");
        // Queues are found where the client looks for them.
        Ok(Response::from_parts(head, Full::new(body)))
    }

    async fn in_part(&self, mut asked: Asked) -> Result<Answer, std::io::Error> {
        let mut body: Value = serde_json::from_slice(&asked.body)?;
        let entries = body["Entries"].as_array_mut().unwrap();
        let all = std::mem::take(entries).into_iter().enumerate();
        let (done, failed): (Vec<_>, Vec<_>) = all.partition(|(number, _)| number % 2 == 0);
        entries.extend(done.into_iter().map(|(_, entry)| entry));
        asked.body = body.to_string().into();
        let (head, body) = self.forward(&asked).await?.into_parts();
        let body = body
            .collect()
            .await
            .map_err(std::io::Error::other)?
            .to_bytes();
        let mut answer: Value = serde_json::from_slice(&body)?;
        let failed = failed.into_iter().map(|(_, entry)| {
            json!({"Id": entry["Id"], "SenderFault": false, "Code": "InternalError", "Message": "try again"})
        });
        answer["Failed"] = failed.collect();
        let mut answer = Response::new(Full::new(answer.to_string().into()));
        *answer.status_mut() = head.status;
        Ok(answer)
    }
}

/// `SendMessageBatch`, `CreateSchedule`, and so on.
fn operation(head: &hyper::http::request::Parts) -> String {
    let target = head
        .headers
        .get("x-amz-target")
        .and_then(|it| it.to_str().ok());
    if let Some((_, operation)) = target.and_then(|target| target.rsplit_once('.')) {
        return operation.to_owned();
    }
    let one = head.uri.path().trim_start_matches('/').contains('/');
    let verb = match head.method {
        Method::POST => "Create",
        Method::PUT => "Update",
        Method::DELETE => "Delete",
        _ if one => "Get",
        _ => "List",
    };
    let what = head.uri.path().trim_start_matches('/').split('/').next();
    match what {
        Some("schedules") if one => format!("{verb}Schedule"),
        Some("schedules") => format!("{verb}Schedules"),
        _ => format!("{verb}ScheduleGroup"),
    }
}

/// What EventBridge Scheduler does not take.
fn schedule(asked: &Asked) -> Option<String> {
    let body: Value = serde_json::from_slice(&asked.body).ok()?;
    let text = |pointer| {
        body.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let name = asked.head.uri.path().rsplit('/').next().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
        return Some(format!("1 validation error detected: name {name}"));
    }
    let at = text("/ScheduleExpression")
        .strip_prefix("at(")
        .and_then(|it| it.strip_suffix(')'));
    let at = at
        .filter(|at| at.len() == 19)
        .and_then(|at| format!("{at}Z").parse::<Utc>().ok());
    let Some(at) = at else {
        return Some(format!(
            "Invalid Schedule Expression {}.",
            text("/ScheduleExpression")
        ));
    };
    if at <= Utc::of(&SystemClock) {
        return Some("Invalid Schedule Expression: it is in the past.".to_owned());
    }
    let attempts = body
        .pointer("/Target/RetryPolicy/MaximumRetryAttempts")
        .and_then(Value::as_i64);
    let as_it_should = text("/ScheduleExpressionTimezone") == "UTC"
        && text("/FlexibleTimeWindow/Mode") == "OFF"
        && text("/ActionAfterCompletion") == "DELETE"
        && text("/Target/RoleArn").starts_with("arn:aws:iam::")
        && text("/Target/DeadLetterConfig/Arn").starts_with("arn:aws:sqs:")
        && !text("/ClientToken").is_empty()
        && attempts.is_some_and(|attempts| (0..=185).contains(&attempts));
    (!as_it_should).then(|| format!("not as it should be: {body}"))
}

/// What SQS does not take.
fn batch(asked: &Asked) -> Option<String> {
    let body: Value = serde_json::from_slice(&asked.body).ok()?;
    let entries = body["Entries"].as_array()?;
    let ids: HashSet<_> = entries.iter().map(|entry| entry["Id"].as_str()).collect();
    if entries.is_empty() || entries.len() > 10 || ids.len() != entries.len() {
        return Some(format!("{} entries, {} ids", entries.len(), ids.len()));
    }
    let bodies = entries
        .iter()
        .filter_map(|entry| entry["MessageBody"].as_str());
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let (bytes, fine) = bodies.fold((0, true), |(bytes, fine), body| {
        (bytes + body.len(), fine && body.chars().all(allowed))
    });
    (bytes > 1024 * 1024 || !fine).then(|| format!("{bytes} bytes, allowed: {fine}"))
}

fn refuse(status: u16, code: &str, words: &str) -> Answer {
    let body = json!({"__type": code, "message": words, "Message": words});
    let mut answer = Response::new(Full::new(body.to_string().into()));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    answer
        .headers_mut()
        .insert("x-amzn-errortype", code.parse().unwrap());
    answer
        .headers_mut()
        .insert("content-type", "application/json".parse().unwrap());
    answer
}
