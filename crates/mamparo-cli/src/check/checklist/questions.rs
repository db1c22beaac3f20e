//! The questions, and who answers each.

use serde::Serialize;

use super::facts::{Answer, Facts, Status, open};
use super::{breaker, capacity, meaning, time};
use crate::check::chain::Path;
use crate::check::service::Service;

/// All questions with their answers.
#[derive(Debug, Serialize)]
pub(in crate::check) struct Checklist {
    pub(super) answered: usize,
    pub(super) missing: usize,
    pub(super) open: usize,
    pub(super) sections: Vec<Section>,
}

#[derive(Debug, Serialize)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) questions: Vec<Question>,
}

#[derive(Debug, Serialize)]
pub(super) struct Question {
    pub(super) asks: &'static str,
    /// That of its worst answer.
    pub(super) status: Status,
    pub(super) answers: Vec<Grouped>,
}

/// An answer, and the dependencies that it is about; it is about the whole service where there are none.
#[derive(Debug, Serialize)]
pub(super) struct Grouped {
    pub(super) status: Status,
    pub(super) says: String,
    pub(super) about: Vec<About>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct About {
    pub(super) service: String,
    pub(super) dependency: String,
}

/// Who answers a question.
enum By {
    Policy(fn(&Facts<'_>) -> Answer),
    /// A person, with what helps to find out.
    Person(&'static str),
}

use By::{Person, Policy};

type Asked = (&'static str, By);

const MEANING: &[Asked] = &[
    (
        "May a request be repeated without a second effect?",
        Policy(meaning::may_be_repeated),
    ),
    (
        "Does the dependency tell a repetition where it has to?",
        Policy(meaning::tells_a_repetition),
    ),
    (
        "Which failures are transient?",
        Policy(meaning::are_transient),
    ),
    ("Which answers are final?", Policy(meaning::are_final)),
    (
        "Is a rejection of the breaker tried again within the operation?",
        Policy(meaning::is_the_breaker_asked_again),
    ),
    (
        "What if the answer is lost after the effect?",
        Policy(meaning::is_a_lost_answer_foreseen),
    ),
];

const TIME: &[Asked] = &[
    (
        "Is there a deadline for the whole operation?",
        Policy(time::is_there_a_deadline),
    ),
    (
        "Is the dependency told what remains of it?",
        Policy(time::does_it_travel),
    ),
    (
        "Is each phase of an attempt bounded?",
        Policy(time::are_all_phases_bounded),
    ),
    (
        "How many attempts really fit?",
        Policy(time::how_many_attempts_fit),
    ),
    (
        "Is time kept back to deliver the answer?",
        Policy(time::is_time_kept_back),
    ),
    (
        "Can the waits use up the deadline?",
        Policy(time::can_waits_use_it_up),
    ),
];

const CAPACITY: &[Asked] = &[
    ("Who owns the retry?", Policy(capacity::who_owns_the_retry)),
    (
        "Does a client library send again by itself?",
        Policy(capacity::who_else_sends_again),
    ),
    (
        "Does a gateway, a proxy or a mesh?",
        Policy(capacity::who_else_sends_again),
    ),
    (
        "What bounds the resends of one operation?",
        Policy(capacity::is_an_operation_bounded),
    ),
    (
        "What bounds the resends of all of them?",
        Policy(capacity::is_traffic_bounded),
    ),
    (
        "Has the dependency room for the worst case?",
        Policy(capacity::is_there_room),
    ),
];

const BREAKER: &[Asked] = &[
    (
        "Does it observe attempts, or what comes of operations?",
        Policy(breaker::what_does_it_observe),
    ),
    (
        "Does it count failures and slow calls?",
        Policy(breaker::does_it_count_slow_calls),
    ),
    (
        "How many calls must there be before it judges?",
        Policy(breaker::is_there_a_least_sample),
    ),
    (
        "Is it settled what it leaves out?",
        Policy(breaker::what_does_it_leave_out),
    ),
    (
        "Does half-open bound the probes?",
        Policy(breaker::are_probes_bounded),
    ),
    (
        "Is a bulkhead needed besides?",
        Policy(breaker::is_there_a_bulkhead),
    ),
];

const OBSERVED: &[Asked] = &[
    (
        "Are operations and attempts told apart?",
        Person("mamparo.operations and mamparo.attempts: on panels of their own"),
    ),
    (
        "Is the amplification measured?",
        Person("mamparo.attempts / mamparo.operations, over the same time"),
    ),
    (
        "Is it measured what resends are good for?",
        Person("mamparo.recovered_operations / mamparo.resent_operations"),
    ),
    (
        "Is it recorded how much of the deadline remains?",
        Person("remaining_deadline_ms, on each resend that is scheduled"),
    ),
    (
        "Does a trace show each attempt?",
        Person("a span for each, with AttemptLayer; `mamparo call` shows how it looks"),
    ),
    (
        "Are the breaker's changes and rejections seen?",
        Person("mamparo.breaker.transitions and mamparo.rejections"),
    ),
    (
        "Does anybody hear that the budget is used up?",
        Person(
            "mamparo.budget.consumed / mamparo.budget.allowed near 1: docs/operating has such an alert",
        ),
    ),
];

const TRIED: &[Asked] = &[
    (
        "Were errors, latency, resets and overload tried?",
        Person("FaultLayer brings them about, with the feature fault"),
    ),
    (
        "Was an answer lost after its effect?",
        Person("and did the effect come once? `mamparo demo` shows such a loss"),
    ),
    (
        "Do those further in stop when the caller goes away?",
        Person("mamparo.late_work.duration stays empty"),
    ),
    (
        "Was a dependency tried that recovers only in part?",
        Person("a share of its answers, or one of its replicas, still fails"),
    ),
    (
        "Was the load that arrives compared with the load of the callers?",
        Person("at the dependency, while it fails"),
    ),
    (
        "What does the service offer without the dependency?",
        Person("a FallbackLayer, an answer in part, or a promise for later"),
    ),
];

const SECTIONS: &[(&str, &[Asked])] = &[
    ("meaning", MEANING),
    ("time", TIME),
    ("capacity", CAPACITY),
    ("circuit breaker", BREAKER),
    ("observability", OBSERVED),
    ("validation", TRIED),
];

impl Checklist {
    /// Asks everything, of each dependency.
    pub(in crate::check) fn of(services: &[Service], paths: &[Path]) -> Self {
        let facts =
            |service| Service::outlines(service).map(move |it| Facts::of(service, it, paths));
        let facts: Vec<_> = services.iter().flat_map(facts).collect();
        let section = |(name, asked): &(&'static str, &[Asked])| Section {
            name,
            questions: asked
                .iter()
                .map(|asked| Question::of(asked, &facts))
                .collect(),
        };
        let sections: Vec<_> = SECTIONS.iter().map(section).collect();
        let count = |status| {
            let questions = sections.iter().flat_map(|section| &section.questions);
            questions
                .filter(|question| question.status == status)
                .count()
        };
        Self {
            answered: count(Status::Answered),
            missing: count(Status::Missing),
            open: count(Status::Open),
            sections,
        }
    }
}

impl Question {
    fn of((asks, by): &Asked, facts: &[Facts<'_>]) -> Self {
        let mut answers: Vec<Grouped> = Vec::new();
        match by {
            Person(hint) => answers.push(Grouped::of(open(*hint))),
            Policy(_) if facts.is_empty() => {
                answers.push(Grouped::of(open("there is no dependency to ask it of")))
            }
            Policy(answer) => {
                for facts in facts {
                    let answer = answer(facts);
                    let about = About {
                        service: facts.service.name.clone(),
                        dependency: facts.name.to_owned(),
                    };
                    match answers
                        .iter_mut()
                        .find(|it| it.says == answer.says && it.status == answer.status)
                    {
                        Some(same) => same.about.push(about),
                        None => answers.push(Grouped {
                            about: vec![about],
                            ..Grouped::of(answer)
                        }),
                    }
                }
            }
        }
        let worst = answers.iter().map(|answer| answer.status).max();
        Self {
            asks,
            status: worst.unwrap_or(Status::Open),
            answers,
        }
    }
}

impl Grouped {
    fn of(answer: Answer) -> Self {
        Self {
            status: answer.status,
            says: answer.says,
            about: Vec::new(),
        }
    }
}
