//! The check, from what was typed to how it exits.

use super::checklist::{self, Checklist};
use super::found::Found;
use super::graph::Graph;
use super::mermaid::mermaid;
use super::sarif::sarif;
use super::service::Service;
use super::svg::{MAX_ARROWS, svg};
use super::text::text;
use super::watch::watch;
use crate::args::{CheckArgs, Report};
use crate::exit::Exit;
use crate::output;
use crate::policies::framed;

/// Runs `mamparo check`.
pub(crate) async fn check(args: CheckArgs) -> Exit {
    if args.checklist && args.format == Report::Sarif {
        output::error("a checklist is no SARIF: ask for --format text or --format json");
        return Exit::Usage;
    }
    match args.watch {
        true => watch(&args.files, || once(&args)).await,
        false => once(&args),
    }
}

fn once(args: &CheckArgs) -> Exit {
    let services = match services(args) {
        Ok(services) => services,
        Err(error) => {
            output::error(&error);
            return Exit::Usage;
        }
    };
    let found = Found::of(&services);
    let exit = match found.errors > 0 || args.deny_warnings && found.warnings > 0 {
        true => Exit::REFUSED,
        false => Exit::Success,
    };
    if args.mermaid || args.svg || args.checklist {
        let errors = found.findings.iter().filter(|finding| finding.is_error());
        errors.for_each(|error| output::note(&framed(error)));
    }
    exit.written(&output::report(&report(args, &services, &found)))
}

fn services(args: &CheckArgs) -> Result<Vec<Service>, String> {
    let mut services: Vec<Service> = Vec::new();
    for path in &args.files {
        let service = Service::read(path)?;
        let shown = path.display();
        if services.iter().any(|other| other.name == service.name) {
            let name = service.name;
            return Err(format!(
                "{shown}: there are two services called {name}: write [service] name, or put their files into one folder"
            ));
        }
        services.push(service);
    }
    Ok(services)
}

fn report(args: &CheckArgs, services: &[Service], found: &Found) -> String {
    if args.mermaid {
        return mermaid(&Graph::of(services, usize::MAX));
    }
    if args.svg {
        return svg(&Graph::of(services, MAX_ARROWS), &found.paths);
    }
    if args.checklist {
        let checklist = Checklist::of(services, &found.paths);
        return match args.format {
            Report::Json => json(&checklist),
            Report::Text | Report::Sarif => checklist::text(&checklist),
        };
    }
    match args.format {
        Report::Text => text(found),
        Report::Json => json(found),
        Report::Sarif => format!("{:#}\n", sarif(found)),
    }
}

fn json(report: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(report).map_or_else(|error| error.to_string(), |it| it + "\n")
}
