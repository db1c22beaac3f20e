//! `mamparo tx`.

use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use mamparo_durable::backend::{Begun, Filter};
use mamparo_durable::engine::{Engine, Transaction};
use mamparo_durable::limits::MAX_REQUEST_BYTES;
use mamparo_durable::machine::{Label, Note, Record, TransactionId};
use mamparo_durable::policy::Policies;
use mamparo_durable::web::StoredRequest;
use mamparo_telemetry::durable::is_traceparent;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::place::Place;
use super::policy::{load, policies};
use super::record;
use super::trouble::{Trouble, ended};
use crate::args::{Data, ListArgs, OneArgs, OperateArgs, RetryArgs, SubmitArgs, TxCommand};
use crate::exit::Exit;
use crate::output;

/// As many rows of history are read at once.
const PAGE: usize = 500;

/// Without an engine in this process, another one looks again after so long.
const NO_POLL: std::time::Duration = std::time::Duration::from_secs(60);

/// Runs `mamparo tx`.
pub(crate) async fn tx(command: TxCommand) -> Exit {
    ended(match command {
        TxCommand::Submit(args) => submit(args).await,
        TxCommand::Show(args) => show(&args).await,
        TxCommand::List(args) => list(args).await,
        TxCommand::Resolve(args) => resolve(&args).await,
        TxCommand::Cancel(args) => cancel(&args).await,
        TxCommand::RetryNow(args) => retry(&args).await,
    })
}

async fn submit(args: SubmitArgs) -> Result<Exit, Trouble> {
    let files = match args.policy.is_empty() {
        true => None,
        false => Some(load(&args.policy)?),
    };
    let mut url = args.url.clone();
    let mut agreed = Policies::default();
    if let Some(files) = &files {
        let policy = files.dependency(&args.dependency);
        let policy = policy.map_err(|error| Trouble::usage(error.to_string()))?;
        agreed = policies(files)?;
        if let Some(base) = policy.url().filter(|_| url.starts_with('/')) {
            url = format!("{}{url}", base.trim_end_matches('/'));
        }
    }
    let request = request(&args, &url).await?;
    let backend = args.store.store.work(NO_POLL).await?;
    let engine = Engine::builder(backend).policies(agreed).build();
    let engine = engine.map_err(|error| Trouble::usage(error.to_string()))?;
    let dependency = Label::from(args.dependency.as_str());
    let mut transaction =
        Transaction::new(args.id.clone(), dependency.clone(), request).dependency(dependency);
    if let Some(customer) = args.customer.as_deref() {
        transaction = transaction.customer(customer);
    }
    // As other tools do, one that the environment has wrong is as none.
    let inherited = std::env::var("TRACEPARENT").ok();
    let traceparent = args
        .traceparent
        .clone()
        .or_else(|| inherited.filter(|text| is_traceparent(text)));
    if let Some(traceparent) = traceparent {
        transaction = transaction.trace(traceparent);
    }
    let begun = engine.begin(transaction).await?;
    let record = stored(&engine, &args.id).await?;
    let new = begun == Begun::New;
    if args.store.json {
        let mut json = record::transaction(&record);
        json["new"] = Value::Bool(new);
        return written(&format!("{json:#}\n"));
    }
    let there = if new { "" } else { "it was there already: " };
    written(&format!("{there}{}\n", record::line(&record)))
}

async fn request(args: &SubmitArgs, url: &str) -> Result<Bytes, Trouble> {
    let uri: Uri = url
        .parse()
        .map_err(|error| Trouble::usage(format!("{url} is no address: {error}")))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(Trouble::usage(format!(
            "{url} has no http:// or https:// before it; a path needs the dependency's `url` in --policy"
        )));
    }
    let method = args.method.as_deref().unwrap_or("POST");
    let method: Method = method
        .parse()
        .map_err(|_| Trouble::usage(format!("{method} is no method")))?;
    let mut headers = HeaderMap::new();
    for field in &args.headers {
        headers.append(field.name.clone(), field.value.clone());
    }
    let mut request = Request::new(body(args.data.as_ref()).await?);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(StoredRequest::new(&request).encode())
}

async fn body(data: Option<&Data>) -> Result<Bytes, Trouble> {
    match data {
        None => Ok(Bytes::new()),
        Some(Data::Text(text)) => Ok(text.clone()),
        Some(Data::Stdin) => read(tokio::io::stdin(), Path::new("stdin")).await,
        Some(Data::File(path)) => {
            let file = tokio::fs::File::open(path).await;
            let unreadable =
                |error| Trouble::usage(format!("{} can't be read: {error}", path.display()));
            read(file.map_err(unreadable)?, path).await
        }
    }
}

/// Reads no more than can be stored.
async fn read(source: impl AsyncRead + Unpin, from: &Path) -> Result<Bytes, Trouble> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_REQUEST_BYTES).unwrap_or(u64::MAX);
    let mut source = source.take(most.saturating_add(1));
    match source.read_to_end(&mut bytes).await {
        Ok(_) => Ok(bytes.into()),
        Err(error) => Err(Trouble::usage(format!(
            "{} can't be read: {error}",
            from.display()
        ))),
    }
}

async fn show(args: &OneArgs) -> Result<Exit, Trouble> {
    let engine = engine(&args.store.store).await?;
    let record = stored(&engine, &args.id).await?;
    let mut history = Vec::new();
    loop {
        let page = engine.history(&args.id, history.len(), PAGE).await?;
        let last = page.len() < PAGE;
        history.extend(page);
        if last {
            break;
        }
    }
    if args.store.json {
        let mut json = record::transaction(&record);
        let events = history.iter().map(|event| record::event(event, &args.id));
        json["history"] = events.collect();
        return written(&format!("{json:#}\n"));
    }
    let events = history
        .iter()
        .map(|event| record::event_line(event, &args.id));
    let lines: Vec<_> = std::iter::once(record::line(&record))
        .chain(events)
        .collect();
    written(&format!("{}\n", lines.join("\n")))
}

async fn list(args: ListArgs) -> Result<Exit, Trouble> {
    let engine = engine(&args.store.store).await?;
    let mut filter = Filter::default();
    filter.state = args.state;
    filter.dependency = args.dependency.as_deref().map(Label::from);
    filter.after = args.after;
    let max = usize::try_from(args.max).unwrap_or(usize::MAX);
    let records = engine.backend().store().list(filter, max).await?;
    if args.store.json {
        let records: Vec<_> = records.iter().map(record::transaction).collect();
        return written(&format!("{:#}\n", json!({ "transactions": records })));
    }
    let lines = records.iter().map(|record| record::line(record) + "\n");
    written(&lines.collect::<String>())
}

async fn resolve(args: &OperateArgs) -> Result<Exit, Trouble> {
    let engine = engine(&args.one.store.store).await?;
    let note = engine.resolve(&args.one.id, why(args)).await?;
    told(&engine, &args.one, note).await
}

async fn cancel(args: &OperateArgs) -> Result<Exit, Trouble> {
    let engine = engine(&args.one.store.store).await?;
    let note = engine.cancel(&args.one.id, why(args)).await?;
    told(&engine, &args.one, note).await
}

async fn retry(args: &RetryArgs) -> Result<Exit, Trouble> {
    let RetryArgs { operate, at } = args;
    let engine = engine(&operate.one.store.store).await?;
    let (id, why) = (&operate.one.id, why(operate));
    let note = match at {
        Some(at) => engine.move_to(id, *at, why).await?,
        None => engine.fire_now(id, why).await?,
    };
    told(&engine, &operate.one, note).await
}

fn why(args: &OperateArgs) -> Option<Label> {
    args.reason.as_deref().map(Label::from)
}

/// Says what came of it, and how the transaction stands now.
async fn told(engine: &Engine, args: &OneArgs, note: Note) -> Result<Exit, Trouble> {
    if note == Note::Unknown {
        return Err(unknown(&args.id));
    }
    let record = stored(engine, &args.id).await?;
    let done = matches!(note, Note::Applied | Note::Resumed | Note::Already);
    if args.store.json {
        let mut json = record::transaction(&record);
        json["outcome"] = note.as_str().into();
        let exit = written(&format!("{json:#}\n"))?;
        return Ok(if done { exit } else { Exit::REFUSED });
    }
    if done {
        return written(&format!("{}\n", record::line(&record)));
    }
    let why = match note {
        Note::Finished => "it is at its end",
        Note::Corrupt => "what is stored of it contradicts itself",
        _ if record.progress.is_technical_wait() => {
            "its last send failed, and the dependency may have acted: wait for the answer, or resolve it"
        }
        _ => "its state does not allow that",
    };
    let state = record.progress.state;
    Err(Trouble::refused(format!("{} is {state}: {why}", args.id)))
}

async fn engine(place: &Place) -> Result<Engine, Trouble> {
    let engine = Engine::builder(place.open().await?).build();
    engine.map_err(|error| Trouble::usage(error.to_string()))
}

async fn stored(engine: &Engine, id: &TransactionId) -> Result<Record, Trouble> {
    engine.load(id).await?.ok_or_else(|| unknown(id))
}

fn unknown(id: &TransactionId) -> Trouble {
    Trouble::refused(format!("{id}: there is no such transaction"))
}

pub(crate) fn written(text: &str) -> Result<Exit, Trouble> {
    Ok(Exit::Success.written(&output::report(text)))
}
