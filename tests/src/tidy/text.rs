//! Lengths, and words that no file may hold.

use super::tree;

const MAX_LINES: usize = 450;
const MAX_TEST_LINES: usize = 800;
const MAX_COLUMNS: usize = 140;

#[test]
fn no_rust_file_is_too_long_to_hold_one_idea() {
    let rust = tree::files()
        .into_iter()
        .filter(|file| file.path.ends_with(".rs"));
    let problems: Vec<String> = rust
        .filter_map(|file| too_long(&file.path, &file.text))
        .collect();
    tree::report(&problems);
}

#[test]
fn no_line_of_code_is_wider_than_a_screen() {
    let mut problems = Vec::new();
    for file in tree::files()
        .into_iter()
        .filter(|file| file.path.ends_with(".rs"))
    {
        let wide = file
            .text
            .lines()
            .zip(1..)
            .filter(|(line, _)| line.chars().count() > MAX_COLUMNS);
        problems.extend(wide.map(|(_, at)| {
            format!(
                "{}:{at} is over {MAX_COLUMNS} columns wide: break the line",
                file.path
            )
        }));
    }
    tree::report(&problems);
}

#[test]
fn no_file_names_a_machine_a_registry_or_how_work_is_organised() {
    // Cargo writes its registry's address into each lock file.
    let files = tree::files()
        .into_iter()
        .filter(|file| !file.path.ends_with("Cargo.lock"));
    let problems: Vec<String> = files
        .flat_map(|file| forbidden(&file.path, &file.text))
        .collect();
    tree::report(&problems);
}

#[test]
fn every_link_of_a_document_leads_to_a_file() {
    let documents = tree::files()
        .into_iter()
        .filter(|file| file.path.ends_with(".md"));
    let mut problems = Vec::new();
    for document in documents {
        let folder = document
            .path
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        for link in links(&document.text) {
            if !tree::root().join(folder).join(link).exists() {
                let mend = "correct the link, or write what it leads to";
                problems.push(format!(
                    "{} links to {link}, which is not there: {mend}",
                    document.path
                ));
            }
        }
    }
    tree::report(&problems);
}

/// Where the links of a document lead that stay within the workspace.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'));
    let paths = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    paths.filter(|path| !path.is_empty() && !path.contains(':'))
}

fn too_long(path: &str, text: &str) -> Option<String> {
    let tests =
        path.starts_with("tests/") || path.ends_with("tests.rs") || path.contains("/tests/");
    let most = if tests { MAX_TEST_LINES } else { MAX_LINES };
    let lines = text.lines().count();
    (lines > most).then(|| format!("{path} has {lines} lines, {most} at most: find the second idea and give it its own file"))
}

fn forbidden(path: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (line, at) in text.lines().zip(1..) {
        for (word, mend) in words() {
            if line.contains(&word) {
                problems.push(format!("{path}:{at} holds `{word}`: {mend}"));
            }
        }
    }
    problems
}

/// What no file may hold, put together here so that this file doesn't hold it either.
fn words() -> Vec<(String, &'static str)> {
    let path = "a path of one machine: make it relative, or ask for it";
    let host = "a registry's host: name the package, the client knows where to find it";
    let process = "says how the work is organised: leave it out";
    let folders = ["work", "root", "tmp", "home"].map(|folder| (format!("/{folder}/"), path));
    let hosts = [
        "crates.io",
        "static.crates.io",
        "index.crates.io",
        "pypi.org",
        "registry.npmjs.org",
        "deb.debian.org",
    ];
    let hosts = hosts.map(|name| (format!("://{name}"), host));
    let trailers = ["Co-authored", "Signed-off"].map(|word| (format!("{word}-by"), process));
    folders.into_iter().chain(hosts).chain(trailers).collect()
}

#[test]
fn a_file_at_its_limit_passes_and_one_line_more_does_not() {
    let lines = |count: usize| "x\n".repeat(count);
    assert_eq!(
        too_long("crates/mamparo/src/lib.rs", &lines(MAX_LINES)),
        None
    );
    assert!(too_long("crates/mamparo/src/lib.rs", &lines(MAX_LINES + 1)).is_some());
    assert_eq!(
        too_long("crates/mamparo/src/retry/tests.rs", &lines(MAX_TEST_LINES)),
        None
    );
}

#[test]
fn a_path_of_one_machine_is_found_with_its_line() {
    let problems = forbidden("a.rs", &format!("fine\ncd /{}/x", "root"));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("a.rs:2 holds"), "{}", problems[0]);
}

#[test]
fn only_links_within_the_workspace_are_followed() {
    let text = "[a](b.md#c), [d](#e), [f](https://g) and [h](../i/)";
    assert_eq!(links(text).collect::<Vec<_>>(), ["b.md", "../i/"]);
}
