//! What can happen next.

use stateright::{Model, Property};

use super::super::{Gate, Input};
use super::bounds::{Bounds, Looks, Setting, Without, hour};
use super::judge::Wrong;
use super::world::{Did, Letter, Said, Stage, Used, Worker, World};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Act {
    /// A handler takes a message.
    Take(Letter),
    /// A handler takes a fire while the breaker is open.
    TakeWhileOpen(Letter),
    /// A worker does its next step, or dies before it.
    Step(Who),
    Crash(Who),
    Duplicate(Letter),
    Lose(Letter),
    /// A schedule is due; fires again; is gone after it fired.
    Fires(usize),
    /// Its instant has come, but not its fire.
    IsLate(usize),
    FiresAgain(usize),
    Purge(usize),
    /// The dependency gets a request and does it, or refuses.
    Serve(Letter, Did),
    /// So, but the caller sees a technical failure.
    ServeUnheard(Letter, Did),
    /// The caller sees a timeout, and the request is still on its way.
    TimeOut(Letter),
    /// The request never arrives, and the caller sees it.
    Reset(Letter),
    /// The dependency gets a request with a key that it knows.
    ServeAgain(Letter),
    Cancel,
    Resolve,
    Move,
    Postpone,
    Reconcile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    A(usize),
    B(usize),
    Reconciler,
    Operator,
}

impl Act {
    /// Whether it is a fault, or an interference, of which there is a bounded number.
    pub(super) const fn is_fault(self) -> bool {
        !matches!(
            self,
            Self::Take(_)
                | Self::Step(_)
                | Self::Fires(_)
                | Self::Purge(_)
                | Self::Serve(..)
                | Self::ServeAgain(_)
                | Self::Reconcile
        )
    }
}

/// The machine in a world with these bounds.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) bounds: Bounds,
    pub(super) setting: Setting,
}

impl Checked {
    pub(super) fn new(bounds: Bounds) -> Self {
        let setting = Setting::new(&bounds);
        Self { bounds, setting }
    }

    /// What can happen without a fault.
    pub(super) fn calm_steps(&self, world: &World) -> Vec<(Act, World)> {
        let mut acts = Vec::new();
        self.actions(world, &mut acts);
        let calm = acts.into_iter().filter(|act| !act.is_fault());
        calm.filter_map(|act| self.next_state(world, act).map(|next| (act, next)))
            .collect()
    }

    /// What is wrong with a state, if anything is.
    pub(super) fn wrong(&self, world: &World) -> Option<Wrong> {
        if world.wrong.is_some() {
            return world.wrong;
        }
        // While there is a message, a schedule or a worker, something can happen.
        if !world.is_calm() || !self.calm_steps(world).is_empty() {
            return None;
        }
        match world.row.state.is_terminal() {
            false => Some(Wrong::Lost),
            true => world.is_untold().then_some(Wrong::NoAlert),
        }
    }

    fn messages(&self, world: &World, acts: &mut Vec<Act>) {
        let mut letters = world.letters.clone();
        letters.dedup();
        for letter in letters {
            match letter {
                Letter::Request { n, .. } => self.requests(world, letter, n, acts),
                Letter::Answer { .. } if world.a.len() < self.bounds.parallel => {
                    acts.push(Act::Take(letter))
                }
                Letter::Fire { .. } if world.b.len() < self.bounds.parallel => {
                    acts.push(Act::Take(letter));
                    if world.used.breaker < self.bounds.breaker {
                        acts.push(Act::TakeWhileOpen(letter));
                    }
                }
                _ => {}
            }
            if world.used.duplicates < self.bounds.duplicates {
                acts.push(Act::Duplicate(letter));
            }
            if world.used.losses < self.bounds.losses && !matches!(letter, Letter::Fire { .. }) {
                acts.push(Act::Lose(letter));
            }
        }
    }

    fn requests(&self, world: &World, letter: Letter, n: u32, acts: &mut Vec<Act>) {
        if world.did[n as usize] != Did::Nothing {
            acts.push(Act::ServeAgain(letter));
            return;
        }
        let fails = world.used.technical < self.bounds.technical;
        for did in [Did::It, Did::Refuse] {
            acts.push(Act::Serve(letter, did));
            if fails {
                acts.push(Act::ServeUnheard(letter, did));
            }
        }
        if fails {
            acts.extend([Act::TimeOut(letter), Act::Reset(letter)]);
        }
    }

    fn workers(&self, world: &World, acts: &mut Vec<Act>) {
        let a = (0..world.a.len()).map(Who::A);
        let b = (0..world.b.len()).map(Who::B);
        let reconciler = world.reconciler.is_some().then_some(Who::Reconciler);
        let operator = world.operator.is_some().then_some(Who::Operator);
        for who in a.chain(b).chain(reconciler).chain(operator) {
            acts.push(Act::Step(who));
            if world.used.crashes < self.bounds.crashes {
                acts.push(Act::Crash(who));
            }
        }
    }

    fn schedules(&self, world: &World, acts: &mut Vec<Act>) {
        for (at, entry) in world.schedules.iter().enumerate() {
            match entry.stage {
                Stage::Armed => {
                    acts.push(Act::Fires(at));
                    if matches!(self.bounds.looks, Looks::Anytime(times) if world.used.looks < times)
                    {
                        acts.push(Act::IsLate(at));
                    }
                }
                Stage::Overdue => acts.push(Act::Fires(at)),
                Stage::Fired => {
                    if self.bounds.purge {
                        acts.push(Act::Purge(at));
                    }
                    if world.used.duplicates < self.bounds.duplicates {
                        acts.push(Act::FiresAgain(at));
                    }
                }
                Stage::Gone => {}
            }
        }
    }

    fn people(&self, world: &World, acts: &mut Vec<Act>) {
        if world.used.operators < self.bounds.operators && world.operator.is_none() {
            acts.extend([Act::Cancel, Act::Resolve, Act::Move, Act::Postpone]);
        }
        let looks = match self.bounds.looks {
            Looks::Never => false,
            Looks::WhenCalm => world.is_calm(),
            Looks::Anytime(times) => world.is_calm() || world.used.looks < times,
        };
        let there = !self.bounds.lacks(Without::Reconciler);
        if looks && there && world.reconciler.is_none() && world.used.resends < 2 {
            acts.push(Act::Reconcile);
        }
    }

    fn operate(&self, world: &mut World, input: Input) {
        world.used.operators += 1;
        let hours = world.hours();
        world.operator = Some(world.work(None, input, &self.setting, hours));
    }

    fn take(&self, world: &mut World, letter: Letter, gate: Gate) -> Option<()> {
        world.remove(letter);
        let input = World::input(letter, gate)?;
        let hours = world.hours_of(Some(letter));
        let worker = world.work(Some(letter), input, &self.setting, hours);
        match letter {
            Letter::Answer { .. } => world.a.push(worker),
            _ => world.b.push(worker),
        }
        Some(())
    }

    fn step(&self, world: &mut World, who: Who) -> Option<()> {
        let worker = take_out(world, who)?;
        let hours = match who {
            Who::Reconciler => world.reconcilers_hours(),
            _ => world.hours_of(worker.letter),
        };
        let left = world.step(worker, &self.bounds, &self.setting, hours);
        match (who, left) {
            (_, None) => {}
            (Who::A(_), Some(worker)) => world.a.push(worker),
            (Who::B(_), Some(worker)) => world.b.push(worker),
            (Who::Reconciler, worker) => world.reconciler = worker,
            (Who::Operator, worker) => world.operator = worker,
        }
        Some(())
    }

    fn crash(world: &mut World, who: Who) -> Option<()> {
        let worker = take_out(world, who)?;
        world.used.crashes += 1;
        match worker.letter {
            Some(letter) => world.push(letter),
            // Whoever sent again may have died before it did.
            None if who == Who::Reconciler => {
                world.used.resends = world.used.resends.saturating_sub(1);
            }
            None => world.excuse(),
        }
        Some(())
    }

    fn reconcile(&self, world: &mut World) -> Option<()> {
        let calm = world.is_calm();
        let worker = world.reconcile(&self.setting, self.bounds.looks)?;
        world.used.looks += u8::from(!calm);
        world.used.resends += u8::from(world.row.state == super::super::State::InFlight);
        world.reconciler = Some(worker);
        Some(())
    }

    fn act(&self, world: &mut World, act: Act) -> Option<()> {
        let used: &mut Used = &mut world.used;
        match act {
            Act::Take(letter) => return self.take(world, letter, Gate::Pass),
            Act::TakeWhileOpen(letter) => {
                used.breaker += 1;
                return self.take(world, letter, Gate::Postpone { until: None });
            }
            Act::Step(who) => return self.step(world, who),
            Act::Crash(who) => return Self::crash(world, who),
            Act::Duplicate(letter) => {
                used.duplicates += 1;
                world.push(letter);
            }
            Act::Lose(letter) => {
                used.losses += 1;
                world.excuse();
                world.remove(letter);
            }
            Act::FiresAgain(at) => {
                used.duplicates += 1;
                world.fires(at);
            }
            Act::Fires(at) => world.fires(at),
            Act::IsLate(at) => {
                used.looks += 1;
                world.schedules[at].stage = Stage::Overdue;
            }
            Act::Purge(at) => world.schedules[at].stage = Stage::Gone,
            Act::Cancel => self.operate(world, Input::Cancel { reason: None }),
            Act::Resolve => self.operate(world, Input::Resolve { reason: None }),
            Act::Move => self.operate(
                world,
                Input::Move {
                    to: hour(9),
                    reason: None,
                },
            ),
            Act::Postpone => self.operate(world, Input::Postpone { until: None }),
            Act::Reconcile => return self.reconcile(world),
            Act::Serve(..)
            | Act::ServeUnheard(..)
            | Act::TimeOut(_)
            | Act::Reset(_)
            | Act::ServeAgain(_) => {
                return self.serve(world, act);
            }
        }
        Some(())
    }

    fn serve(&self, world: &mut World, act: Act) -> Option<()> {
        let (Act::Serve(letter, _)
        | Act::ServeUnheard(letter, _)
        | Act::TimeOut(letter)
        | Act::Reset(letter)
        | Act::ServeAgain(letter)) = act
        else {
            return None;
        };
        let Letter::Request { n, seq } = letter else {
            return None;
        };
        // The same answer as a request that is still on its way will get.
        if !matches!(act, Act::TimeOut(_)) {
            world.remove(letter);
        }
        world.used.technical += u8::from(act.is_fault());
        match act {
            Act::Serve(_, did) => {
                world.serve(n, did, &self.bounds);
                let said = if did == Did::It {
                    Said::Done
                } else {
                    Said::Refused
                };
                world.push(Letter::Answer { n, seq, said });
            }
            Act::ServeUnheard(_, did) => {
                world.serve(n, did, &self.bounds);
                world.technical(n, seq);
            }
            Act::ServeAgain(_) => world.serve_again(n, seq, self.bounds.repeat),
            _ => world.technical(n, seq),
        }
        Some(())
    }
}

fn take_out(world: &mut World, who: Who) -> Option<Worker> {
    match who {
        Who::A(at) => (at < world.a.len()).then(|| world.a.remove(at)),
        Who::B(at) => (at < world.b.len()).then(|| world.b.remove(at)),
        Who::Reconciler => world.reconciler.take(),
        Who::Operator => world.operator.take(),
    }
}

impl Model for Checked {
    type State = World;
    type Action = Act;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.bounds, &self.setting)]
    }

    fn actions(&self, world: &World, acts: &mut Vec<Act>) {
        if world.wrong.is_some() {
            return;
        }
        self.messages(world, acts);
        self.workers(world, acts);
        self.schedules(world, acts);
        self.people(world, acts);
    }

    fn next_state(&self, last: &World, act: Act) -> Option<World> {
        let mut world = last.clone();
        self.act(&mut world, act)?;
        sort(&mut world.a);
        sort(&mut world.b);
        (world != *last).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(
            "nothing is wrong",
            |checked: &Self, world| checked.wrong(world).is_none(),
        )]
    }
}

/// Two handlers of a kind are as good as each other: states that differ only in who is who are one.
fn sort(workers: &mut [Worker]) {
    if let [one, two] = workers
        && rank(one) > rank(two)
    {
        workers.swap(0, 1);
    }
}

fn rank(worker: &Worker) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    worker.hash(&mut hasher);
    hasher.finish()
}
