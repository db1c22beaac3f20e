//! `mamparo schema`.

use mamparo::policy::json_schema;

use crate::exit::Exit;
use crate::output;

/// Prints the JSON Schema of a policy file.
pub(crate) fn schema() -> Exit {
    let text = format!("{:#}\n", json_schema());
    Exit::Success.written(&output::all(text.as_bytes()))
}
