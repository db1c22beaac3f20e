//! The checklist for people.

use std::collections::BTreeSet;

use super::Checklist;
use super::facts::Status;
use super::questions::{About, Grouped, Question};
use crate::output::{Mood, painted};

/// As many dependencies are named beside an answer.
const MAX_NAMES: usize = 8;

/// Each question, and below it its answers, each with those that it is about where they differ.
pub(in crate::check) fn text(checklist: &Checklist) -> String {
    let questions = checklist.sections.iter().flat_map(|it| &it.questions);
    let answers = questions.flat_map(|it| &it.answers);
    let services: BTreeSet<_> = answers
        .flat_map(|it| &it.about)
        .map(|it| &it.service)
        .collect();
    let mut text = String::new();
    for section in &checklist.sections {
        text.push_str(&format!("{}\n", section.name));
        for question in &section.questions {
            text.push_str(&asked(question, services.len() > 1));
        }
        text.push('\n');
    }
    let Checklist {
        answered,
        missing,
        open,
        ..
    } = checklist;
    let all = answered + missing + open;
    text.push_str(&format!(
        "{all} questions: {answered} answered, {missing} with a gap, {open} for a person to answer\n"
    ));
    text
}

fn asked(question: &Question, of_several: bool) -> String {
    let mut text = format!("  {}\n", question.asks);
    for answer in &question.answers {
        let mark = match answer.status {
            Status::Answered => painted(Mood::Good, "ok  "),
            Status::Open => painted(Mood::Doubtful, "open"),
            Status::Missing => painted(Mood::Bad, "gap "),
        };
        let about = match question.answers.len() {
            1 => String::new(),
            _ => names(answer, of_several),
        };
        text.push_str(&format!("    {mark}  {about}{}\n", answer.says));
    }
    text
}

fn names(answer: &Grouped, of_several: bool) -> String {
    let name = |about: &About| match of_several {
        true => format!("{} → {}", about.service, about.dependency),
        false => about.dependency.clone(),
    };
    let mut names: Vec<_> = answer.about.iter().take(MAX_NAMES).map(name).collect();
    if answer.about.len() > MAX_NAMES {
        names.push(format!("{} more", answer.about.len() - MAX_NAMES));
    }
    format!("{}: ", names.join(", "))
}
