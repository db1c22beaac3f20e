//! Shows a policy file that changes while its services are in use: a right one holds at the next call, a broken one is refused.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;
use std::{env, fs, process};

use http::{Request, Response};
use mamparo::policy::Policies;
use mamparo::replay::ReplayBody;
use mamparo_core::BoxError;
use tokio::sync::mpsc;
use tower::{ServiceBuilder, ServiceExt, service_fn};

type Body = ReplayBody<String>;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let file = env::temp_dir().join(format!("mamparo-reload-{}.toml", process::id()));
    fs::write(&file, "[dependency.catalog]\ndeadline = \"2s\"\n")?;
    let policies = Policies::load([&file])?;
    let (tell, mut told) = mpsc::unbounded_channel();
    let watch = policies.watch().every(Duration::from_millis(50));
    let watch = watch.told(move |reloaded| {
        let said = match reloaded {
            Ok(policies) => format!("loaded {} dependency", policies.iter().count()),
            Err(refused) => refused.to_string(),
        };
        drop(tell.send(said));
    });
    // Kept for as long as the files are watched.
    let _watch = watch.start()?;

    let stack = policies.dependency("catalog")?.http()?;
    let catalog = ServiceBuilder::new().layer(stack).service(service_fn(peer));
    for document in [
        "[dependency.catalog]\ndeadline = \"500ms\"\n",
        "[dependency.catalog]\ndeadlin = \"1s\"\n",
    ] {
        // Replaced at once, so that nobody reads half of it.
        let next = file.with_extension("next");
        fs::write(&next, document)?;
        fs::rename(&next, &file)?;
        println!("{}", told.recv().await.unwrap_or_default());
        let answer = catalog.clone().oneshot(Request::new(String::new())).await?;
        let told = answer.headers().get("told").and_then(|it| it.to_str().ok());
        println!("the dependency has {} ms\n", told.unwrap_or("endless"));
    }
    fs::remove_file(file)?;
    Ok(())
}

/// Answers with the time that it was told it has.
async fn peer(request: Request<Body>) -> Result<Response<String>, BoxError> {
    let mut answer = Response::new(String::new());
    if let Some(told) = request.headers().get("x-request-timeout-ms") {
        answer.headers_mut().insert("told", told.clone());
    }
    Ok(answer)
}
