//! What is wrong with files and variables as a whole.

use crate::policy::source::{is_servers, names_a_setting};
use crate::policy::tree::Table;
use crate::policy::{Origin, Problem};

/// Tells of files that could be read and say nothing; `first` is the name of the first.
pub(in crate::policy) fn something_is_configured(
    first: Option<&str>,
    documents: &[Table],
) -> Option<Problem> {
    let configures = |it: &Table| {
        ["dependency", "server"]
            .iter()
            .any(|key| it.get(key).is_some())
    };
    let (file, line, profile) = (first?.into(), 1, None);
    if documents.is_empty() || documents.iter().any(configures) {
        return None;
    }
    Some(Problem::warning(
        "nothing-configured",
        &Origin::File {
            file,
            line,
            profile,
        },
        "",
        "nothing is configured: there is neither a dependency nor a server",
        "write a table [dependency.NAME], or load the file that has one",
    ))
}

type Variables = Vec<(String, String)>;

/// Returns the variables that name a setting, the server's and all others; those that name none are refused: what one value for a
/// whole table means is not guessed.
pub(in crate::policy) fn settings(
    environment: &[(String, String)],
    problems: &mut Vec<Problem>,
) -> (Variables, Variables) {
    let all = environment.iter().cloned();
    let (settings, others): (Variables, Variables) =
        all.partition(|(name, _)| names_a_setting(name));
    problems.extend(others.iter().map(|(name, _)| names_no_setting(name)));
    settings.into_iter().partition(|(name, _)| is_servers(name))
}

fn names_no_setting(variable: &str) -> Problem {
    let table = variable.trim_end_matches('_');
    let example = match table.split_once("__") {
        Some(_) => format!("{table}__DEADLINE"),
        None => "MAMPARO__CATALOG__DEADLINE".to_owned(),
    };
    Problem::error(
        "incomplete-variable",
        &Origin::Environment(variable.into()),
        "",
        "it names no setting, and one value can't stand for a whole table",
        format!("name the setting, as {example} does, or unset it"),
    )
}
