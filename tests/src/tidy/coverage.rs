//! Every known case is held by a test, or the list says why not.

use super::cases::{CASES, Held};
use super::tree;

/// The table that the list was taken from; it lies beside the workspace on some machines only.
const TABLE: &str = "../shared/reference/cases.md";

/// What the rows of peers' behaviour, which the table does not number, are called in the list.
const PEER: &str = "peer/";

#[test]
fn every_case_names_a_test_that_exists_and_cites_it() {
    let problems: Vec<String> = CASES
        .iter()
        .filter_map(|(id, held)| broken(id, held))
        .collect();
    tree::report(&problems);
}

#[test]
fn no_case_is_listed_twice() {
    let twice = CASES
        .iter()
        .enumerate()
        .filter(|(at, (id, _))| CASES[..*at].iter().any(|(earlier, _)| earlier == id));
    let problems: Vec<String> = twice
        .map(|(_, (id, _))| format!("{id} is in tests/src/tidy/cases.rs twice: keep one"))
        .collect();
    tree::report(&problems);
}

#[test]
fn no_case_of_the_table_is_missing_from_the_list() {
    let rows = tree::text(TABLE)
        .map(|table| ids(&table))
        .unwrap_or_default();
    let missing = rows
        .iter()
        .filter(|row| CASES.iter().all(|(id, _)| id != row));
    let problems: Vec<String> = missing
        .map(|row| format!("{row} of {TABLE} is in neither list: add it to tests/src/tidy/cases.rs with its test or the reason why not"))
        .collect();
    tree::report(&problems);
}

fn broken(id: &str, held: &Held) -> Option<String> {
    let (name, file) = match held {
        Held::Test(name, file) => (name, file),
        Held::Why("") => return Some(format!("{id} has no reason: say why no test holds it")),
        Held::Why(_) => return None,
    };
    let Some(text) = tree::text(file) else {
        return Some(format!(
            "{id} is said to be held in {file}, which is not there: correct tests/src/tidy/cases.rs"
        ));
    };
    if !has_test(&text, name) {
        return Some(format!(
            "{id} is said to be held by {name}, which is no test of {file}: correct tests/src/tidy/cases.rs"
        ));
    }
    let cited = id.starts_with(PEER) || cites(&text, id);
    (!cited).then(|| format!("{file} does not cite {id}: say at {name} which row it holds"))
}

fn has_test(text: &str, name: &str) -> bool {
    text.contains(&format!("fn {name}("))
}

/// Whether `id` stands in `text` by itself, not as the start or end of another (`C1` in `C10`, `A1` in `P-A1`).
fn cites(text: &str, id: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '-';
    text.match_indices(id).any(|(at, _)| {
        !text[..at].ends_with(joins)
            && !text[at + id.len()..].starts_with(|c: char| c.is_alphanumeric())
    })
}

/// The rows of the table: its numbered ones, then the peers', each by the peer's name and its place.
fn ids(table: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut peer = None;
    for cells in table.lines().filter_map(cells) {
        match (&mut peer, cells) {
            (None, ["peer", "seen"]) => peer = Some((String::new(), 0)),
            (None, [id, _]) if is_id(id) => ids.push(id.to_owned()),
            (Some((name, at)), [first, _]) if !first.starts_with("---") => {
                if let Some(next) = first.split(' ').next().filter(|next| !next.is_empty()) {
                    (*name, *at) = (next.to_owned(), 0);
                }
                *at += 1;
                ids.push(format!("{PEER}{name}-{at}"));
            }
            _ => {}
        }
    }
    ids
}

/// The first two cells of a table's line.
fn cells(line: &str) -> Option<[&str; 2]> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    Some([cells.next()?, cells.next()?])
}

fn is_id(cell: &str) -> bool {
    let cell = cell.strip_prefix("P-").unwrap_or(cell);
    let number = cell.trim_start_matches(|c: char| c.is_ascii_uppercase());
    number.len() + 1 == cell.len()
        && !number.is_empty()
        && number.chars().all(|c| c.is_ascii_digit())
}

#[test]
fn the_rows_of_a_table_are_read_with_those_of_its_peers() {
    let numbered = "| ID | x |\n|---|---|\n| C1 | a |\n| P-B12 | b |\n";
    let peers = "| peer | seen |\n|---|---|\n| tower 0.5 | a |\n| | b |\n| other 1 | c |";
    let table = format!("{numbered}\n{peers}");
    assert_eq!(
        ids(&table),
        [
            "C1",
            "P-B12",
            "peer/tower-1",
            "peer/tower-2",
            "peer/other-1"
        ]
    );
}

#[test]
fn a_missing_reason_test_or_citation_is_a_problem() {
    let file = "tests/src/tidy/coverage.rs";
    let name = "a_missing_reason_test_or_citation_is_a_problem";
    let id = ["Z", "98"].concat();
    assert!(broken("C1", &Held::Why("")).is_some());
    assert!(broken("C1", &Held::Test("gone", file)).is_some());
    assert!(broken("C1", &Held::Test(name, "gone.rs")).is_some());
    assert!(broken(&id, &Held::Test(name, file)).is_some());
    // Row Z99
    assert_eq!(broken("Z99", &Held::Test(name, file)), None);
    assert!(!cites("P-A10 and C12", "A1") && !cites("P-A1", "A1") && !cites("C12", "C1"));
}
