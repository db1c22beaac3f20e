//! What begins and ends every call, whatever its protocol.

use mamparo_core::BoxError;

use super::about::{About, Answered, Form, Refused};
use super::ending::{Came, Ended, judge};
use super::record::Record;
use super::report::report;
use crate::args::CallArgs;
use crate::exit::Exit;
use crate::output;
use crate::telemetry::Pipeline;
use crate::trace::Kept;

/// Sets the telemetry up.
pub(super) fn telemetry(args: &CallArgs) -> Result<Pipeline, Refused> {
    Pipeline::new("mamparo", args.otlp.clone())
        .map_err(|error| Refused(format!("--otlp can't be used: {error}")))
}

/// Says what became of a call, and exports its telemetry.
pub(super) async fn finish<A: Answered>(
    about: &About,
    came: Came<A>,
    telemetry: &Pipeline,
) -> Exit {
    let kept = telemetry.kept();
    let seen = kept
        .roots()
        .first()
        .map_or(0, |root| kept.attempts(root).len());
    let ended = judge(&came, about, u32::try_from(seen).unwrap_or(u32::MAX));
    let exit = match about.output {
        Form::Json => write_json(about, &kept, &came, &ended),
        Form::Body | Form::HeadAndBody => {
            report(&kept, about.dependency, &came, &ended);
            ended.exit
        }
    };
    if let (_, Err(why)) = telemetry.finish().await {
        output::warning(&why);
    }
    exit
}

fn write_json<A: Answered>(about: &About, kept: &Kept, came: &Came<A>, ended: &Ended) -> Exit {
    let record = Record::new(about, kept, came, ended);
    let written = serde_json::to_vec_pretty(&record)
        .map_err(BoxError::from)
        .and_then(|mut json| {
            json.push(b'\n');
            Ok(output::all(&json)?)
        });
    match written {
        Ok(()) => ended.exit,
        Err(error) => {
            output::error(&format!(
                "the record could not be written to stdout: {error}"
            ));
            Exit::Unwritten
        }
    }
}
