//! Where things stand in a picture of a graph: columns from the outside inward, and no two things in one place.
//!
//! Each arrow goes through a place of its own in every column between its ends, the labels' columns included, so labels
//! and arrows keep clear of nodes and of each other (after Sugiyama, Tagawa and Toda, 1981).

use std::collections::BTreeMap;

use super::graph::Graph;

/// As often are the columns set in order from their neighbours, there and back.
const SWEEPS: usize = 8;

/// What stands in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thing {
    /// A node of the graph, by its number.
    Node(usize),
    /// Where an arrow passes, by its number; the first one bears the label.
    Pass(usize),
}

/// A column, and a thing that stands there.
pub(super) type Place = (usize, Thing);

/// A thing, and how low it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) thing: Thing,
    /// The middle of its height.
    pub(super) y: f64,
}

/// Columns of things. Nodes stand in those of even number, labels in those of odd number.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) columns: Vec<Vec<Placed>>,
    /// The things that each arrow goes through, from its outer end inward: their columns, and their places there.
    pub(super) ways: BTreeMap<usize, Vec<Place>>,
}

impl Layout {
    /// Places all nodes and arrows, but for arrows of a node to itself; `gap` is how far things of a column stand apart.
    pub(super) fn of(graph: &Graph, gap: f64) -> Self {
        let ranks = ranks(graph);
        let mut layout = Self {
            columns: vec![Vec::new(); ranks.iter().max().map_or(0, |most| most * 2 + 1)],
            ways: BTreeMap::new(),
        };
        for (node, rank) in ranks.iter().enumerate() {
            layout.put(rank * 2, Thing::Node(node));
        }
        for (number, arrow) in graph.arrows.iter().enumerate() {
            let (from, to) = (ranks[arrow.from], ranks[arrow.to]);
            if arrow.from == arrow.to {
                continue;
            }
            // An arrow back is drawn from right to left.
            let (outer, inner) = if from < to {
                (arrow.from, arrow.to)
            } else {
                (arrow.to, arrow.from)
            };
            let (left, right) = (from.min(to) * 2, from.max(to) * 2);
            let mut way = vec![(left, Thing::Node(outer))];
            for column in left + 1..right {
                layout.put(column, Thing::Pass(number));
                way.push((column, Thing::Pass(number)));
            }
            way.push((right, Thing::Node(inner)));
            layout.ways.insert(number, way);
        }
        for _ in 0..SWEEPS {
            layout.sweep(gap, true);
            layout.sweep(gap, false);
        }
        layout.start_at_zero();
        layout
    }

    fn put(&mut self, column: usize, thing: Thing) {
        let y = self.columns[column].len() as f64;
        self.columns[column].push(Placed { thing, y });
    }

    /// Where a thing stands.
    pub(super) fn y(&self, (column, thing): Place) -> f64 {
        let mut there = self.columns[column].iter();
        there.find(|it| it.thing == thing).map_or(0.0, |it| it.y)
    }

    /// Moves each thing towards the middle of its neighbours on one side, as far as those of its own column let it.
    fn sweep(&mut self, gap: f64, inward: bool) {
        let mut wishes: BTreeMap<Place, Vec<f64>> = BTreeMap::new();
        let columns = self.columns.len();
        let order: Vec<usize> = match inward {
            true => (0..columns).collect(),
            false => (0..columns).rev().collect(),
        };
        for column in order {
            for placed in &mut self.columns[column] {
                if let Some(wishes) = wishes.get(&(column, placed.thing)) {
                    placed.y = wishes.iter().sum::<f64>() / wishes.len() as f64;
                }
            }
            self.columns[column].sort_by(|one, other| {
                let by_place = one.y.total_cmp(&other.y);
                by_place.then(one.thing.cmp(&other.thing))
            });
            apart(&mut self.columns[column], gap);
            for (here, there) in self.steps(inward).filter(|(here, _)| here.0 == column) {
                wishes.entry(there).or_default().push(self.y(here));
            }
        }
    }

    /// Each step of each arrow from one column to the next, inward or outward.
    fn steps(&self, inward: bool) -> impl Iterator<Item = (Place, Place)> {
        let ways = self.ways.values();
        ways.flat_map(move |way| {
            let steps = way.iter().zip(way.iter().skip(1));
            steps.map(move |(outer, inner)| match inward {
                true => (*outer, *inner),
                false => (*inner, *outer),
            })
        })
    }

    /// The highest thing stands at 0.
    fn start_at_zero(&mut self) {
        let all = self.columns.iter().flatten().map(|placed| placed.y);
        let top = all.fold(f64::INFINITY, f64::min);
        for placed in self.columns.iter_mut().flatten() {
            placed.y -= top;
        }
    }

    /// How far below the highest thing the lowest stands.
    pub(super) fn height(&self) -> f64 {
        let all = self.columns.iter().flatten().map(|placed| placed.y);
        all.fold(0.0, f64::max)
    }
}

/// Pushes what is too near apart, and keeps the middle of the column where it is.
fn apart(column: &mut [Placed], gap: f64) {
    let middle =
        |column: &[Placed]| column.iter().map(|it| it.y).sum::<f64>() / column.len() as f64;
    let before = middle(column);
    let mut least = f64::NEG_INFINITY;
    for placed in column.iter_mut() {
        placed.y = placed.y.max(least);
        least = placed.y + gap;
    }
    let moved = before - middle(column);
    column.iter_mut().for_each(|placed| placed.y += moved);
}

/// How many calls each node is from the outside, on its longest way; calls that go around in a circle end it.
fn ranks(graph: &Graph) -> Vec<usize> {
    let mut inward: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for arrow in &graph.arrows {
        inward[arrow.from].push(arrow.to);
    }
    let mut called = vec![false; graph.nodes.len()];
    graph
        .arrows
        .iter()
        .filter(|arrow| arrow.from != arrow.to)
        .for_each(|arrow| called[arrow.to] = true);
    let mut walk = Walk {
        inward: &inward,
        state: vec![State::New; graph.nodes.len()],
        done: Vec::new(),
        forward: Vec::new(),
    };
    // From the outermost first; what is left goes around in a circle.
    let outer = (0..called.len()).filter(|node| !called[*node]);
    for node in outer.chain(0..called.len()) {
        walk.from(node);
    }
    let mut ranks = vec![0; graph.nodes.len()];
    for node in walk.done.iter().rev() {
        for (_, to) in walk.forward.iter().filter(|(from, _)| from == node) {
            ranks[*to] = ranks[*to].max(ranks[*node] + 1);
        }
    }
    ranks
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// The walk went in, and has not come out yet.
    Open,
    Done,
}

struct Walk<'a> {
    inward: &'a [Vec<usize>],
    state: Vec<State>,
    /// Each node after all that it calls.
    done: Vec<usize>,
    /// The calls that close no circle.
    forward: Vec<(usize, usize)>,
}

impl Walk<'_> {
    /// Goes in as deep as it can; with a stack of its own, because chains may be long.
    fn from(&mut self, start: usize) {
        if self.state[start] != State::New {
            return;
        }
        self.state[start] = State::Open;
        let mut path = vec![(start, 0)];
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            let Some(&to) = self.inward[node].get(*next) else {
                self.state[node] = State::Done;
                self.done.push(node);
                path.pop();
                continue;
            };
            *next += 1;
            if self.state[to] != State::Open {
                self.forward.push((node, to));
            }
            if self.state[to] == State::New {
                self.state[to] = State::Open;
                path.push((to, 0));
            }
        }
    }
}
