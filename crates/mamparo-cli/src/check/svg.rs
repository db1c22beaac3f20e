//! Who calls whom, as a picture that needs nothing else.

use std::fmt::Display;

use super::chain::Path;
use super::graph::{Arrow, Graph, Node};
use super::layout::{Layout, Place, Thing};
use super::text::along;

/// As many calls are drawn: of more nobody sees anything.
pub(super) const MAX_ARROWS: usize = 200;

/// As many paths are written below the picture.
const MAX_PATHS: usize = 5;

/// Longer texts are cut.
const MAX_NAME: usize = 32;
const MAX_LINE: usize = 140;

const EDGE: f64 = 24.0;
const BOX: f64 = 44.0;
/// How far the middles of two things of a column are apart.
const GAP: f64 = 64.0;
/// Where arrows bend, between two columns.
const BEND: f64 = 36.0;
const LINE: f64 = 20.0;
const PADDING: f64 = 14.0;

/// Colours for a light and a dark page: the picture brings its own page.
const STYLE: &str = "\
.page{fill:#ffffff}
text{fill:#1f2328;font-family:sans-serif;font-size:13px}
.small{fill:#59636e;font-size:12px}
.dependency{fill:#f6f8fa;stroke:#818b98}
.service{fill:#ddf4ff;stroke:#0969da}
.arrow{fill:none;stroke:#818b98;stroke-width:1.5}
.again{stroke:#bc4c00;stroke-width:2}
.head{fill:#818b98}
.head-again{fill:#bc4c00}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117}
text{fill:#f0f6fc}
.small{fill:#9198a1}
.dependency{fill:#151b23;stroke:#656c76}
.service{fill:#0c2d6b;stroke:#4493f8}
.arrow{stroke:#9198a1}
.again{stroke:#f0883e}
.head{fill:#9198a1}
.head-again{fill:#f0883e}
}
";

/// The picture of a graph, and what its paths come to.
pub(super) fn svg(graph: &Graph, paths: &[Path]) -> String {
    let layout = Layout::of(graph, GAP);
    let spans = spans(graph, &layout);
    let below = below(graph, paths);
    let inner = spans.last().map_or(0.0, |(_, right)| *right);
    let widest = below.iter().map(|line| width(line)).fold(inner, f64::max);
    let drawn = match graph.nodes.is_empty() {
        true => 0.0,
        false => layout.height() + BOX,
    };
    let size = (
        widest.max(inner) + 2.0 * EDGE,
        drawn + below.len() as f64 * LINE + 3.0 * EDGE,
    );
    let mut picture = Picture::new(size, graph);
    for (number, way) in &layout.ways {
        let arrow = &graph.arrows[*number];
        let points = way.iter().map(|at| (spans[at.0], layout.y(*at)));
        let points: Vec<_> = points.collect();
        picture.arrow(arrow, &points, goes_back(arrow, way));
    }
    for (column, things) in layout.columns.iter().enumerate() {
        for placed in things {
            if let Thing::Node(number) = placed.thing {
                let own = graph.arrows.iter();
                let own = own.filter(|it| it.from == number && it.to == number);
                picture.node(&graph.nodes[number], own, spans[column], placed.y);
            }
        }
    }
    for (line, at) in below.iter().zip(1..) {
        let y = drawn + EDGE * 1.5 + LINE * f64::from(at);
        picture.text("small", "start", (EDGE, y), line);
    }
    picture.finish()
}

fn goes_back(arrow: &Arrow, way: &[Place]) -> bool {
    way.first()
        .is_some_and(|(_, thing)| *thing != Thing::Node(arrow.from))
}

/// Where each column begins and ends.
fn spans(graph: &Graph, layout: &Layout) -> Vec<(f64, f64)> {
    let mut left = 0.0;
    let columns = layout.columns.iter().zip(0..).map(|(things, column)| {
        let widths = things.iter().map(|placed| match placed.thing {
            Thing::Node(number) => {
                let own = graph.arrows.iter();
                let own = own.filter(|it| it.from == number && it.to == number);
                let lines = own.map(|arrow| width(&itself(arrow)));
                lines.fold(width(&cut(&graph.nodes[number].name, MAX_NAME)), f64::max)
                    + 2.0 * PADDING
            }
            // Only where it passes first it has its label.
            Thing::Pass(number) if layout.ways[&number][1].0 != column => 0.0,
            Thing::Pass(number) => {
                let arrow = &graph.arrows[number];
                width(&cut(&arrow.attempts, MAX_NAME)).max(width(&arrow.deadline)) + PADDING
            }
        });
        let span = (left, left + widths.fold(0.0, f64::max));
        left = span.1 + BEND;
        span
    });
    columns.collect()
}

fn itself(arrow: &Arrow) -> String {
    cut(&format!("calls itself: {}", arrow.attempts), MAX_NAME)
}

/// What stands below the picture: what the costliest paths come to, and what is not drawn.
fn below(graph: &Graph, paths: &[Path]) -> Vec<String> {
    let mut costly: Vec<_> = paths.iter().collect();
    costly.sort_by_key(|path| std::cmp::Reverse(path.calls));
    let shown = costly.iter().take(MAX_PATHS);
    let mut lines: Vec<_> = shown
        .map(|path| cut(along(path).trim_end(), MAX_LINE))
        .collect();
    if costly.len() > MAX_PATHS {
        lines.push(format!("and {} more paths", costly.len() - MAX_PATHS));
    }
    if graph.left_out > 0 {
        lines.push(format!("{} more calls are not drawn", graph.left_out));
    }
    if graph.nodes.is_empty() {
        lines.push("nothing is called".to_owned());
    }
    lines
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// About as wide is a text of 13 pixels.
fn width(text: &str) -> f64 {
    let widths = text.chars().map(|c| if c.is_ascii() { 7.4 } else { 13.0 });
    widths.sum()
}

/// A picture that is being drawn.
struct Picture(String);

impl Picture {
    fn new((width, height): (f64, f64), graph: &Graph) -> Self {
        let mut picture = Self(String::new());
        picture.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">"
        ));
        let name = |number: usize| &graph.nodes[number].name;
        let calls = graph.arrows.iter().map(|arrow| {
            let (from, to) = (name(arrow.from), name(arrow.to));
            format!("{from} calls {to}: {}, {}.", arrow.attempts, arrow.deadline)
        });
        let told = calls.collect::<Vec<_>>().join(" ");
        picture
            .add("<title>Who calls whom, with how many attempts and within which deadline</title>");
        picture.add(format_args!("<desc>{}</desc>", escaped(&told)));
        picture.add(format_args!("<style>\n{STYLE}</style>"));
        for name in ["head", "head-again"] {
            picture.add(format_args!(
                "<marker id=\"{name}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" markerHeight=\"9\" \
                 markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\"><path class=\"{name}\" d=\"M0,0 L10,5 L0,10 z\"/></marker>"
            ));
        }
        picture.add(format_args!(
            "<rect class=\"page\" width=\"{width:.0}\" height=\"{height:.0}\"/>"
        ));
        picture
    }

    /// A line through places, with its label at the first that is between its ends.
    fn arrow(&mut self, arrow: &Arrow, places: &[((f64, f64), f64)], back: bool) {
        let y = |y: f64| y + EDGE + BOX / 2.0;
        let mut line = String::new();
        for (number, ((left, right), at)) in places.iter().enumerate() {
            let (left, right, at) = (left + EDGE, right + EDGE, y(*at));
            if number == 0 {
                line += &format!("M{right:.1},{at:.1}");
                continue;
            }
            let before = places[number - 1];
            let (from, bend) = (y(before.1), left - BEND / 2.0);
            line += &format!(" C{bend:.1},{from:.1} {bend:.1},{at:.1} {left:.1},{at:.1}");
            if number + 1 < places.len() {
                line += &format!(" L{right:.1},{at:.1}");
            }
        }
        let (class, head) = match arrow.sends_again {
            true => ("arrow again", "head-again"),
            false => ("arrow", "head"),
        };
        let end = if back { "start" } else { "end" };
        self.add(format_args!(
            "<path class=\"{class}\" d=\"{line}\" marker-{end}=\"url(#{head})\"/>"
        ));
        if let Some(((left, right), at)) = places.get(1) {
            let middle = f64::midpoint(*left, *right) + EDGE;
            let attempts = cut(&arrow.attempts, MAX_NAME);
            self.text("label", "middle", (middle, y(*at) - 6.0), &attempts);
            self.text(
                "label small",
                "middle",
                (middle, y(*at) + 16.0),
                &arrow.deadline,
            );
        }
    }

    fn node<'a>(
        &mut self,
        node: &Node,
        own: impl Iterator<Item = &'a Arrow>,
        (left, right): (f64, f64),
        y: f64,
    ) {
        let class = if node.is_service {
            "service"
        } else {
            "dependency"
        };
        let (x, y, width) = (left + EDGE, y + EDGE, right - left);
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BOX}\" rx=\"6\">\
             <title>{}</title></rect>",
            escaped(&node.name)
        ));
        let (middle, name) = (x + width / 2.0, cut(&node.name, MAX_NAME));
        let lines: Vec<_> = own.map(itself).take(1).collect();
        let up = if lines.is_empty() { 0.0 } else { 8.0 };
        self.text("name", "middle", (middle, y + BOX / 2.0 + 4.5 - up), &name);
        for line in lines {
            self.text("small", "middle", (middle, y + BOX - 9.0), &line);
        }
    }

    fn text(&mut self, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    fn add(&mut self, element: impl Display) {
        self.0 += &format!("{element}\n");
    }

    fn finish(mut self) -> String {
        self.add("</svg>");
        self.0
    }
}

/// Text of an XML document, which may hold no control characters at all (XML 1.0, section 2.2).
fn escaped(text: &str) -> String {
    let allowed = |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let text = text.replace(|c| !allowed(c), "\u{fffd}");
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
