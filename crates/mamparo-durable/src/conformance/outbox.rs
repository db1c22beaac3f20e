//! What an [`Outbox`] promises. Where there is none, these cases pass.

use std::time::Duration;

use super::support::{
    LONG, SHORT, begin, is_empty, load, now, pass, queue, record, stored, take_one, transition,
    waiting,
};
use crate::backend::{
    Backend, Committed, Message, NewTransaction, Outbox, PostponeDue, QueueName, Step,
};
use crate::machine::{
    Answer, Cause, Effect, Outcome, Progress, Record, Schedule, State, Terms, Utc,
};

const APPLIED: Committed = Committed::Applied { conflict: false };

async fn commit(outbox: &dyn Outbox, step: Step) -> Committed {
    let mut committed = outbox.commit(vec![step]).await;
    assert_eq!(committed.len(), 1, "one result for each step");
    committed.remove(0).unwrap()
}

/// A refusal's whole step: two transitions, a schedule, a request and a fire for good measure, an acknowledgement.
async fn whole(backend: &Backend, record: &Record, seq: u32) -> Step {
    let answers = queue(backend, QueueName::Answers);
    let id = record.terms.id.clone();
    answers
        .publish(vec![Message::Answer {
            id: id.clone(),
            answer: Answer::new(1, 0, Outcome::Refused),
        }])
        .await
        .unwrap();
    let fire_at = now();
    let to = |state| Progress {
        schedule_seq: seq,
        ..waiting(record, state, fire_at)
    };
    let mut step = Step::new(id);
    step.writes.push(transition(
        &record.progress,
        &to(State::Scheduling),
        Cause::Refused,
    ));
    step.writes.push(transition(
        &to(State::Scheduling),
        &to(State::Scheduled),
        Cause::Confirmed,
    ));
    step.effects = vec![
        Effect::Schedule(Schedule {
            attempt: 2,
            seq,
            fire_at,
        }),
        Effect::Send { attempt: 2, seq },
        Effect::Refire { attempt: 7, seq },
    ];
    step.settle = Some(take_one(&**answers, LONG).await.receipt);
    step
}

/// A step that fits is done, all of it.
pub async fn a_step_is_done_wholly(backend: Backend) {
    let Some(outbox) = backend.outbox() else {
        return;
    };
    let at = record("t");
    begin(&backend, &at).await;
    let step = whole(&backend, &at, 0).await;
    assert_eq!(commit(&**outbox, step.clone()).await, APPLIED);
    assert_eq!(
        stored(&backend, &at.terms.id).await.progress,
        step.writes[1].to
    );
    let history = backend
        .store()
        .history(at.terms.id.clone(), 0, 10)
        .await
        .unwrap();
    let causes: Vec<Cause> = history.iter().map(|event| event.cause).collect();
    assert_eq!(causes, [Cause::Begun, Cause::Refused, Cause::Confirmed]);
    let fires = queue(&backend, QueueName::Fires);
    let mut fired = super::support::take(&**fires, 2, LONG).await;
    fired.sort_by_key(|delivery| {
        if let Message::Fire { attempt, .. } = delivery.message {
            attempt
        } else {
            0
        }
    });
    let id = at.terms.id.clone();
    assert_eq!(
        fired[0].message,
        Message::Fire {
            id: id.clone(),
            attempt: 2,
            seq: 0
        }
    );
    assert_eq!(
        fired[1].message,
        Message::Fire {
            id,
            attempt: 7,
            seq: 0
        }
    );
    match take_one(&**queue(&backend, QueueName::Requests), LONG)
        .await
        .message
    {
        Message::Request(request) => {
            assert_eq!(
                (request.attempt, request.key().as_str(), &request.body[..]),
                (2, "t#2", &b"the request"[..])
            );
        }
        other => panic!("{other:?} among the requests"),
    }
    assert_eq!(
        queue(&backend, QueueName::Answers)
            .depth()
            .await
            .unwrap()
            .taken,
        0,
        "it is acknowledged"
    );
}

/// A step that misses leaves nothing: no transition, no row, no schedule, no message, no acknowledgement.
pub async fn a_step_that_misses_leaves_nothing(backend: Backend) {
    let Some(outbox) = backend.outbox() else {
        return;
    };
    let at = record("t");
    begin(&backend, &at).await;
    for broken in [0, 1] {
        let mut step = whole(&backend, &at, 0).await;
        step.writes[broken].expect.schedule_seq = 9;
        let receipt = step.settle.clone().unwrap();
        assert_eq!(
            commit(&**outbox, step).await,
            Committed::Missed(Some(at.clone()))
        );
        assert_eq!(stored(&backend, &at.terms.id).await, at);
        assert_eq!(
            backend
                .store()
                .history(at.terms.id.clone(), 0, 10)
                .await
                .unwrap()
                .len(),
            1
        );
        assert!(
            is_empty(&**queue(&backend, QueueName::Fires)).await
                && is_empty(&**queue(&backend, QueueName::Requests)).await
        );
        let answers = queue(&backend, QueueName::Answers);
        assert_eq!(answers.depth().await.unwrap().taken, 1);
        answers.acknowledge(vec![receipt]).await.unwrap();
    }
    let unknown = whole(&backend, &record("unknown"), 0).await;
    assert_eq!(commit(&**outbox, unknown).await, Committed::Missed(None));
}

/// Of many steps in one commit, those that miss stop no other; twice the same in one commit is once.
pub async fn one_step_that_misses_stops_no_other(backend: Backend) {
    let Some(outbox) = backend.outbox() else {
        return;
    };
    let mut steps = Vec::new();
    for n in 0..30 {
        let at = record(&format!("t{n}"));
        begin(&backend, &at).await;
        let mut step = Step::new(at.terms.id.clone());
        step.writes.push(transition(
            &at.progress,
            &waiting(&at, State::Scheduling, now()),
            Cause::Refused,
        ));
        step.writes[0].expect.schedule_seq = u32::from(n % 3 == 0);
        step.effects.push(Effect::Schedule(Schedule {
            attempt: 2,
            seq: 0,
            fire_at: Utc::MIN,
        }));
        steps.push(step);
    }
    steps.push(steps[1].clone());
    let committed = outbox.commit(steps).await;
    let applied: Vec<bool> = committed
        .into_iter()
        .map(|it| it.unwrap() == APPLIED)
        .collect();
    let expected = (0..30).map(|n| n % 3 != 0).chain([false]);
    assert_eq!(applied, expected.collect::<Vec<_>>());
    let fires = queue(&backend, QueueName::Fires);
    super::support::take(&**fires, 20, LONG).await;
    assert!(is_empty(&**fires).await);
}

/// A transaction may begin in a step; if it exists, nothing of the step is done.
pub async fn a_step_may_begin_a_transaction(backend: Backend) {
    let Some(outbox) = backend.outbox() else {
        return;
    };
    let at = record("t");
    let mut step = Step::new(at.terms.id.clone());
    step.begin = Some(NewTransaction::new(at.clone(), &b"the request"[..]).unwrap());
    step.writes.push(transition(
        &at.progress,
        &waiting(&at, State::Scheduled, now()),
        Cause::Refused,
    ));
    step.effects.push(Effect::Send { attempt: 1, seq: 0 });
    assert_eq!(commit(&**outbox, step.clone()).await, APPLIED);
    let after = stored(&backend, &at.terms.id).await;
    assert_eq!(after.progress, step.writes[0].to);
    assert_eq!(
        backend
            .store()
            .history(at.terms.id.clone(), 0, 10)
            .await
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        commit(&**outbox, step).await,
        Committed::Missed(Some(after))
    );
    let requests = queue(&backend, QueueName::Requests);
    take_one(&**requests, LONG).await;
    assert!(is_empty(&**requests).await);
}

/// A schedule of that name with another instant stays as it is, is told, and the rest is done.
pub async fn a_conflict_is_told_and_the_rest_is_done(backend: Backend) {
    let Some(outbox) = backend.outbox() else {
        return;
    };
    let at = record("t");
    begin(&backend, &at).await;
    let mut step = Step::new(at.terms.id.clone());
    step.effects.push(Effect::Schedule(Schedule {
        attempt: 2,
        seq: 0,
        fire_at: Utc::MAX,
    }));
    assert_eq!(commit(&**outbox, step.clone()).await, APPLIED);
    assert_eq!(
        commit(&**outbox, step.clone()).await,
        APPLIED,
        "the same is no conflict"
    );
    step.writes.push(transition(
        &at.progress,
        &waiting(&at, State::Scheduled, now()),
        Cause::Refused,
    ));
    step.effects[0] = Effect::Schedule(Schedule {
        attempt: 2,
        seq: 0,
        fire_at: Utc::MIN,
    });
    assert_eq!(
        commit(&**outbox, step).await,
        Committed::Applied { conflict: true }
    );
    assert_eq!(
        stored(&backend, &at.terms.id).await.progress.state,
        State::Scheduled
    );
    let fires = queue(&backend, QueueName::Fires);
    assert!(is_empty(&**fires).await);
    let mut delete = Step::new(at.terms.id.clone());
    delete
        .effects
        .push(Effect::Unschedule { attempt: 2, seq: 0 });
    assert_eq!(commit(&**outbox, delete).await, APPLIED);
    assert_eq!(fires.depth().await.unwrap().later, 0);
}

/// A step whose delivery is under another's lease by now is done, and leaves the message to the other.
pub async fn whoever_lost_the_lease_acknowledges_nothing(backend: Backend) {
    let Some(outbox) = backend.outbox() else {
        return;
    };
    let at = record("t");
    begin(&backend, &at).await;
    let answers = queue(&backend, QueueName::Answers);
    let id = at.terms.id.clone();
    answers
        .publish(vec![Message::Answer {
            id: id.clone(),
            answer: Answer::new(1, 0, Outcome::Success),
        }])
        .await
        .unwrap();
    let stale = take_one(&**answers, SHORT).await;
    pass(SHORT).await;
    let current = take_one(&**answers, LONG).await;
    let mut step = Step::new(id);
    step.settle = Some(stale.receipt);
    assert_eq!(commit(&**outbox, step.clone()).await, APPLIED);
    assert_eq!(answers.depth().await.unwrap().taken, 1);
    step.settle = Some(current.receipt);
    assert_eq!(commit(&**outbox, step).await, APPLIED);
    assert_eq!(answers.depth().await.unwrap().taken, 0);
}

/// What is due soon for one dependency is postponed together: each as if it had been postponed alone.
pub async fn what_is_due_for_a_dependency_is_postponed_together(backend: Backend) {
    let Some(outbox) = backend.outbox() else {
        return;
    };
    let minute = Duration::from_secs(60);
    let (now, until, spread) = (now(), now().plus(10 * minute), minute);
    let put_to = async |name: &str, dependency: &str, to: Progress| {
        let terms = Terms {
            dependency: Some(dependency.into()),
            ..(*record(name).terms).clone()
        };
        let at = Record::in_flight(terms);
        begin(&backend, &at).await;
        let mut step = Step::new(at.terms.id.clone());
        step.writes
            .push(transition(&at.progress, &to, Cause::Refused));
        let fire_at = to.next_fire_at.unwrap_or(now);
        step.effects.push(Effect::Schedule(Schedule {
            attempt: 2,
            seq: to.schedule_seq,
            fire_at,
        }));
        assert_eq!(commit(&**outbox, step).await, APPLIED);
        Record { progress: to, ..at }
    };
    let waits =
        |state, in_minutes: u32| waiting(&record("any"), state, now.plus(minute * in_minutes));
    let soon = waits(State::Scheduled, 1);
    let mut moved = Vec::new();
    for n in 0..5 {
        moved.push(put_to(&format!("t{n}"), "psp", soon.clone()).await);
    }
    let mut left = vec![
        put_to("other", "catalog", soon.clone()).await,
        put_to("late", "psp", waits(State::Scheduled, 11)).await,
    ];
    left.push(put_to("scheduling", "psp", waits(State::Scheduling, 1)).await);
    let spent = Progress {
        postponements: record("any").terms.max_postponements,
        ..soon
    };
    left.push(put_to("spent", "psp", spent).await);

    let due = PostponeDue::new("psp".into(), now, until, spread, 3);
    assert_eq!(outbox.postpone(due.clone()).await.unwrap(), 3);
    assert_eq!(outbox.postpone(due.clone()).await.unwrap(), 2);
    assert_eq!(outbox.postpone(due).await.unwrap(), 0);
    for before in left {
        assert_eq!(load(&backend, &before.terms.id).await, Some(before));
    }
    let mut instants = Vec::new();
    for before in moved {
        instants.push(is_moved(&backend, &before, until, until.plus(spread)).await);
    }
    instants.dedup();
    assert!(instants.len() > 1, "all at one instant");
    assert_eq!(
        queue(&backend, QueueName::Fires)
            .depth()
            .await
            .unwrap()
            .later,
        9,
        "one schedule each"
    );
}

async fn is_moved(backend: &Backend, before: &Record, least: Utc, most: Utc) -> Utc {
    let after = stored(backend, &before.terms.id).await.progress;
    let (fire_at, from) = (after.next_fire_at.unwrap(), &before.progress);
    assert!(least <= fire_at && fire_at <= most, "{fire_at}");
    let expected = Progress {
        schedule_seq: from.schedule_seq + 1,
        postponements: from.postponements + 1,
        next_fire_at: Some(fire_at),
        updated_at: after.updated_at,
        ..from.clone()
    };
    assert_eq!(after, expected);
    let history = backend
        .store()
        .history(before.terms.id.clone(), 2, 10)
        .await
        .unwrap();
    let postponed = history
        .iter()
        .find(|event| event.cause == Cause::Postponed)
        .unwrap();
    assert_eq!((postponed.seq, postponed.fire_at), (1, Some(fire_at)));
    fire_at
}
