//! The shape of a layer: its files, what its `mod.rs` may hold, which other code it may name, and where it must be listed.

use super::exceptions::{EXTRAS, Exception, LACKS};
use super::source;
use super::tree::{self, File};
use crate::laws;

/// Where layers live. A folder below with a `layer.rs` is a layer.
const HOMES: &[&str] = &[
    "crates/mamparo/src/",
    "crates/mamparo-telemetry/src/",
    "crates/mamparo-durable/src/",
];

/// The files that every layer has, in these roles.
const REQUIRED: &[&str] = &["mod.rs", "layer.rs", "service.rs", "future.rs", "tests.rs"];

/// What `tests.rs` becomes when it gets long.
const TESTS_FOLDER: &str = "tests/";

/// The files that a layer has when it needs them: the decision, the settings, the rejection.
const OPTIONAL: &[&str] = &["state.rs", "config.rs", "error.rs"];

/// Each of these names every layer, so that a reader finds it.
const LISTINGS: &[&str] = &["README.md", "docs/stack-order.md", "docs/service-laws.md"];

#[test]
fn every_layer_has_the_same_files_in_the_same_roles() {
    let problems: Vec<String> = layers().iter().flat_map(shape).collect();
    tree::report(&problems);
}

#[test]
fn every_layer_is_tested_in_its_own_folder() {
    let mut problems = Vec::new();
    for layer in layers() {
        let a_test = |text: &str| text.contains("test]") || text.contains("::test(");
        let tested = |file: &File| is_test(&file.path) && a_test(&file.text);
        if !layer.files.iter().any(tested) {
            problems.push(format!(
                "{}tests.rs holds no test: say there what a caller can see",
                layer.folder
            ));
        }
    }
    tree::report(&problems);
}

#[test]
fn every_mod_rs_tells_the_story_and_holds_no_logic() {
    let mut problems = Vec::new();
    let product = |file: &File| file.path.starts_with("crates/") && file.path.ends_with("/mod.rs");
    for File { path, text } in tree::files().into_iter().filter(product) {
        let mend =
            "a mod.rs has docs, `mod` and `use` only; move the rest to a file named after it";
        problems.extend(source::logic(&text).map(|item| format!("{path} holds `{item}`: {mend}")));
    }
    tree::report(&problems);
}

#[test]
fn no_layer_names_another_layer() {
    let layers = layers();
    let mut problems = Vec::new();
    for layer in &layers {
        let others: Vec<&Layer> = layers
            .iter()
            .filter(|other| other.module != layer.module)
            .collect();
        for file in layer.files.iter().filter(|file| !is_test(&file.path)) {
            problems.extend(others.iter().filter_map(|other| named(file, other)));
        }
    }
    tree::report(&problems);
}

#[test]
fn every_layer_is_run_through_the_laws() {
    let layers = layers();
    let missing = layers
        .iter()
        .filter(|layer| !laws::LAYERS.contains(&layer.name.as_str()));
    let mut problems: Vec<String> = missing
        .map(|layer| {
            format!(
                "{} is not in LAYERS of tests/src/laws/mod.rs: run it through the laws and add it",
                layer.name
            )
        })
        .collect();
    let gone = laws::LAYERS
        .iter()
        .filter(|name| layers.iter().all(|layer| layer.name != **name));
    problems.extend(gone.map(|name| {
        format!("LAYERS of tests/src/laws/mod.rs names {name}, which is no layer: take it out")
    }));
    tree::report(&problems);
}

#[test]
fn every_layer_is_named_where_a_reader_looks_for_it() {
    let mut problems = Vec::new();
    for listing in LISTINGS {
        let text = tree::text(listing).unwrap_or_default();
        for layer in layers() {
            let missing = layer
                .types
                .iter()
                .filter(|name| !source::has_word(&text, name));
            problems
                .extend(missing.map(|name| {
                    format!("{listing} does not name {name} ({}): add it", layer.name)
                }));
        }
    }
    tree::report(&problems);
}

struct Layer {
    /// The folder below its crate's `src`: `retry`, `deadline/server`.
    name: String,
    /// The first part of that: what stands beside the other layers.
    module: String,
    /// Its files, their paths from the root.
    files: Vec<File>,
    /// Where those paths begin.
    folder: String,
    /// The public `…Layer` types.
    types: Vec<String>,
}

impl Layer {
    fn excepted(&self, list: &[Exception], file: &str) -> bool {
        list.iter()
            .any(|(layer, excepted, _)| *layer == self.name && *excepted == file)
    }
}

fn layers() -> Vec<Layer> {
    let mut files = tree::files();
    let mut folders: Vec<String> = files
        .iter()
        .filter_map(|file| file.path.strip_suffix("/layer.rs"))
        .map(str::to_owned)
        .collect();
    // A layer inside another's folder takes its own files first.
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.matches('/').count()));
    let mut layers = Vec::new();
    for folder in folders {
        let Some(name) = HOMES.iter().find_map(|home| folder.strip_prefix(home)) else {
            continue;
        };
        let module = name.split('/').next().unwrap_or_default().to_owned();
        let own: Vec<File> = files
            .extract_if(.., |file| file.path.starts_with(&format!("{folder}/")))
            .collect();
        layers.push(Layer {
            name: name.to_owned(),
            module,
            types: layer_types(&own),
            files: own,
            folder: format!("{folder}/"),
        });
    }
    layers.sort_by(|a, b| a.name.cmp(&b.name));
    layers
}

fn layer_types(files: &[File]) -> Vec<String> {
    let lines = files.iter().flat_map(|file| file.text.lines());
    let names = lines
        .filter_map(|line| line.strip_prefix("pub struct "))
        .map(source::word);
    names.filter(|name| name.ends_with("Layer")).collect()
}

/// Whether a layer's file holds tests.
fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// What differs from the files that a layer has.
fn shape(layer: &Layer) -> Vec<String> {
    let names: Vec<&str> = layer
        .files
        .iter()
        .map(|file| &file.path[layer.folder.len()..])
        .collect();
    let mut problems = Vec::new();
    for file in REQUIRED {
        let folder = *file == "tests.rs" && names.iter().any(|name| name.starts_with(TESTS_FOLDER));
        if !names.contains(file) && !folder && !layer.excepted(LACKS, file) {
            let mend = "add it, or say in LACKS of tests/src/tidy/exceptions.rs why not";
            problems.push(format!("{}{file} is missing: {mend}", layer.folder));
        }
    }
    for name in names {
        // A folder is one entry, whatever is in it.
        let entry = name.split_inclusive('/').next().unwrap_or_default();
        let listed = [REQUIRED, OPTIONAL, &[TESTS_FOLDER]].concat();
        if !listed.contains(&entry) && !layer.excepted(EXTRAS, entry) {
            let mend = "fold it in, or say in EXTRAS of tests/src/tidy/exceptions.rs why";
            problems.push(format!(
                "{}{name} is no file of a layer: {mend}",
                layer.folder
            ));
        }
    }
    problems
}

/// How `file` reaches into the layer `other`, if it does.
fn named(file: &File, other: &Layer) -> Option<String> {
    let code = source::code(&file.text);
    let by_type = other
        .types
        .iter()
        .find(|name| source::has_word(&code, name));
    let by_path = source::modules(&code)
        .contains(&other.module)
        .then_some(&other.module);
    let name = by_type.or(by_path)?;
    let mend = "what two layers share goes to mamparo-core";
    Some(format!(
        "{} names {name}, of another layer: {mend}",
        file.path
    ))
}

fn layer(name: &str, files: &[(&str, &str)]) -> Layer {
    let folder = format!("crates/mamparo/src/{name}/");
    let file = |&(path, text): &(&str, &str)| File {
        path: format!("{folder}{path}"),
        text: text.to_owned(),
    };
    let files: Vec<File> = files.iter().map(file).collect();
    Layer {
        name: name.to_owned(),
        module: name.to_owned(),
        types: layer_types(&files),
        files,
        folder,
    }
}

#[test]
fn a_missing_file_and_an_unknown_one_are_each_a_problem() {
    let whole = [
        ("mod.rs", ""),
        ("layer.rs", ""),
        ("service.rs", ""),
        ("future.rs", ""),
        ("tests.rs", ""),
        ("state.rs", ""),
    ];
    assert_eq!(shape(&layer("a", &whole)), Vec::<String>::new());
    assert_eq!(shape(&layer("a", &whole[1..])).len(), 1);
    let more: Vec<_> = whole
        .iter()
        .copied()
        .chain([("helpers.rs", ""), ("deep/mod.rs", "")])
        .collect();
    assert_eq!(shape(&layer("a", &more)).len(), 2);
}

#[test]
fn another_layer_is_found_by_its_path_in_a_group_or_by_its_type() {
    let other = layer("retry", &[("layer.rs", "pub struct RetryLayer;")]);
    let reaches = |text: &str| {
        named(
            &File {
                path: String::new(),
                text: text.to_owned(),
            },
            &other,
        )
        .is_some()
    };
    assert!(reaches("use crate::retry::State;"));
    assert!(reaches("use crate::{context::Call, retry};"));
    assert!(reaches("use super::super::retry;"));
    assert!(reaches("use crate::RetryLayer;"));
    assert!(!reaches("// as crate::retry does"));
    assert!(!reaches("use crate::{context::{retry}, replay};"));
}
