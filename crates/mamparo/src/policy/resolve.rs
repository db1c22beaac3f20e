//! From documents to one table per dependency: profiles inherited, the environment laid over.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::schema::{DEPENDENCY, checked, nearest};
use super::source::overlay;
use super::tree::{Node, Origin, Table, Value};
use super::view::View;
use super::{Problem, check};

/// As many dependencies as are loaded at most.
const MAX_DEPENDENCIES: usize = 10_000;

/// What a file says beside its dependencies; an editor's schema says nothing to us.
const OF_THE_SERVICE: &[&str] = &["server", "service", "external_retrier", "$schema"];

const TABLES: &[&str] = &[
    "profile",
    "dependency",
    "server",
    "service",
    "external_retrier",
];

/// What all files say together, by kind and name.
#[derive(Default)]
struct Documents {
    profiles: BTreeMap<String, Profile>,
    dependencies: Table,
    /// Where each of them begins.
    known: HashMap<String, Origin>,
    /// Whether it was told that there are too many.
    is_full: bool,
}

struct Profile {
    node: Node,
    /// Its table as those have it that inherit from it.
    inherited: Table,
}

impl Profile {
    fn new(name: &str, node: &Node) -> Self {
        let table = node.table().cloned().unwrap_or_default();
        let mut inherited = table.without("profile");
        inherited.inherited_from(&Arc::from(name));
        let node = node.clone();
        Self { node, inherited }
    }
}

/// Puts documents together and checks each dependency; what is wrong is added to `problems`.
pub(super) fn resolve(
    documents: &[Table],
    environment: impl IntoIterator<Item = (String, String)>,
    problems: &mut Vec<Problem>,
) -> Vec<View> {
    let mut all = Documents::default();
    for document in documents {
        all.add(document, problems);
    }
    for variable in overlay(&mut all.dependencies, environment) {
        let origin = Origin::Environment(variable.clone().into());
        let known: Vec<_> = all.dependencies.iter().map(|(name, _)| name).collect();
        let remedy = format!(
            "the dependencies are {}; unset it, or mend its name",
            known.join(", ")
        );
        let message = "there is no dependency of that name";
        problems.push(Problem::warning(
            "unknown-variable",
            &origin,
            "",
            message,
            remedy,
        ));
    }
    let broken = all.broken_profiles(problems);
    let mut views = Vec::new();
    for (name, node) in all.dependencies.iter() {
        let before = problems.len();
        let path = format!("dependency.{name}");
        let Some(table) = node.table() else {
            continue;
        };
        checked(table, DEPENDENCY, &path, problems);
        let (mut view, profiles) = all.view(name, node, table, problems);
        // Arithmetic with values that are refused would only add to the noise.
        view.is_read = problems.len() == before && profiles.is_disjoint(&broken);
        if view.is_read {
            check::check(&view, problems);
        }
        views.push(view);
    }
    views
}

impl Documents {
    fn add(&mut self, document: &Table, problems: &mut Vec<Problem>) {
        for (key, node) in document.iter() {
            if OF_THE_SERVICE.contains(&key) {
                continue;
            }
            if !["profile", "dependency"].contains(&key) {
                problems.push(unknown_table(key, node));
                continue;
            }
            let Value::Table(named) = &node.value else {
                problems.push(not_a_table(&format!("{key}.NAME"), node));
                continue;
            };
            for (name, node) in named.iter() {
                self.add_named(key, name, node, problems);
            }
        }
    }

    fn add_named(&mut self, kind: &str, name: &str, node: &Node, problems: &mut Vec<Problem>) {
        let path = format!("{kind}.{name}");
        if node.table().is_none() {
            problems.push(not_a_table(&path, node));
            return;
        }
        let there = match kind {
            "profile" => self.profiles.get(name).map(|profile| profile.node.origin()),
            _ => self.known.get(name).cloned(),
        };
        if let Some(there) = there {
            let message = format!("it was written already, in {there}");
            let remedy = "put both into one, or rename one of them";
            problems.push(Problem::error(
                "written-twice",
                &node.origin(),
                path,
                message,
                remedy,
            ));
            return;
        }
        if kind == "profile" {
            let profile = Profile::new(name, node);
            self.profiles.insert(name.to_owned(), profile);
        } else if self.known.len() < MAX_DEPENDENCIES {
            self.known.insert(name.to_owned(), node.origin());
            self.dependencies.add(name.to_owned().into(), node.clone());
        } else if !self.is_full {
            self.is_full = true;
            problems.push(too_many(&node.origin(), path));
        }
    }

    /// Checks each profile where it stands, once; returns those in which something is wrong.
    fn broken_profiles(&self, problems: &mut Vec<Problem>) -> BTreeSet<&str> {
        let mut broken = BTreeSet::new();
        for (name, profile) in &self.profiles {
            let before = problems.len();
            if let Some(table) = profile.node.table() {
                checked(table, DEPENDENCY, &format!("profile.{name}"), problems);
            }
            if problems.len() > before {
                broken.insert(name.as_str());
            }
        }
        broken
    }

    /// A dependency with all that it inherits, as far as the profiles are there; and those.
    fn view(
        &self,
        name: &str,
        node: &Node,
        own: &Table,
        problems: &mut Vec<Problem>,
    ) -> (View, BTreeSet<&str>) {
        let mut table = own.clone();
        let mut line: Vec<&str> = Vec::new();
        let mut owner = format!("dependency.{name}");
        let mut next = own.get("profile");
        while let Some(at) = next {
            // A profile's name that is no text was told already.
            let Value::Text(profile) = &at.value else {
                break;
            };
            let Some((profile, inherited)) = self.profiles.get_key_value(profile) else {
                problems.push(self.no_profile(profile, &at.origin(), &owner));
                break;
            };
            if line.contains(&profile.as_str()) {
                line.push(profile);
                problems.push(cycle(&line, &at.origin(), owner));
                break;
            }
            table = table.over(&inherited.inherited);
            let inherited = inherited.node.table();
            next = inherited.and_then(|table| table.get("profile"));
            owner = format!("profile.{profile}");
            line.push(profile);
        }
        let view = View {
            name: name.to_owned(),
            table,
            origin: node.origin(),
            is_read: false,
        };
        (view, line.into_iter().collect())
    }

    #[cold]
    fn no_profile(&self, name: &str, origin: &Origin, owner: &str) -> Problem {
        let known: Vec<_> = self.profiles.keys().map(String::as_str).collect();
        let remedy = match known.is_empty() {
            true => format!("write [profile.{name}], or leave profile out"),
            false => format!("write one of {}, or add [profile.{name}]", known.join(", ")),
        };
        let path = format!("{owner}.profile");
        Problem::error(
            "unknown-profile",
            origin,
            path,
            format!("there is no profile {name:?}"),
            remedy,
        )
    }
}

#[cold]
fn too_many(origin: &Origin, path: String) -> Problem {
    let message =
        format!("there are more than {MAX_DEPENDENCIES} dependencies, the most that are loaded");
    let remedy = "give one policy to what is called alike, or load other files in another program";
    Problem::error("too-many-dependencies", origin, path, message, remedy)
}

#[cold]
fn unknown_table(key: &str, node: &Node) -> Problem {
    let remedy = match nearest(key, TABLES.iter().copied()) {
        _ if DEPENDENCY.iter().any(|field| field.name == key) => {
            "it is a setting of a dependency: write it below [dependency.NAME] or [profile.NAME]".to_owned()
        }
        Some(name) => format!("did you mean {name:?}?"),
        None => "a file has the tables [profile.NAME], [dependency.NAME], [server], [service] and [[external_retrier]]".to_owned(),
    };
    let message = "there is no such table";
    Problem::error("unknown-key", &node.origin(), key, message, remedy)
}

#[cold]
fn cycle(line: &[&str], origin: &Origin, owner: String) -> Problem {
    let message = format!(
        "profiles inherit from each other in a circle: {}",
        line.join(" → ")
    );
    let remedy = "let one of them inherit from none";
    Problem::error("profile-cycle", origin, owner, message, remedy)
}

#[cold]
fn not_a_table(path: &str, node: &Node) -> Problem {
    let message = format!("it is {}, and should be a table", node.value.what());
    Problem::error(
        "bad-value",
        &node.origin(),
        path,
        message,
        format!("write [{path}]"),
    )
}
