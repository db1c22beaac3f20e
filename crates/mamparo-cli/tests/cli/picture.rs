//! The picture of the breaker's time line: what a reader of it, or a program, relies on.

use roxmltree::{Document, Node};
use serde_json::Value;

/// What is plotted stands between these, and nothing stands outside of the page.
const PLOT: ([f64; 2], [f64; 2]) = ([64.0, 940.0], [104.0, 380.0]);
const PAGE: [f64; 2] = [960.0, 440.0];

/// Checks that a picture is well formed, and shows what the record of the same run says.
pub(crate) fn check(svg: &str, breaker: &Value) {
    let document = Document::parse(svg).expect("well-formed XML");
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    assert_eq!(root.attribute("viewBox"), Some("0 0 960 440"));
    bands(root, breaker["bands"].as_array().unwrap());
    lines(root, breaker["time_line"].as_array().unwrap());
    words(root);
}

/// One band for each state, to scale, without a gap.
fn bands(root: Node<'_, '_>, states: &[Value]) {
    let is_band = |node: &Node<'_, '_>| class(node).starts_with("band ");
    let bands: Vec<_> = root.children().filter(is_band).collect();
    assert_eq!(bands.len(), states.len());
    let whole = states.last().unwrap()["until_ms"].as_f64().unwrap();
    let mut edge = PLOT.0[0];
    for (band, state) in bands.iter().zip(states) {
        assert_eq!(
            class(band),
            format!("band {}", state["state"].as_str().unwrap())
        );
        let [x, width] = ["x", "width"].map(|name| number(band, name));
        assert!((x - edge).abs() < 0.02, "a gap before {x}");
        let [from, until] = ["from_ms", "until_ms"].map(|name| state[name].as_f64().unwrap());
        edge = PLOT.0[0] + (PLOT.0[1] - PLOT.0[0]) * until / whole;
        // The shortest is drawn wider, to be seen.
        assert!(
            (x + width - edge).abs() < 0.02 || width == 2.0,
            "{from} to {until}: {width}"
        );
        let title = band.first_element_child().and_then(|title| title.text());
        assert!(
            title.is_some_and(|title| title.contains(" ms to ")),
            "{title:?}"
        );
    }
    assert!((edge - PLOT.0[1]).abs() < 0.02);
}

/// A point for each slice of time: no more is admitted than offered, and no more fails than is admitted.
fn lines(root: Node<'_, '_>, slices: &[Value]) {
    let [offered, admitted, failed] = ["offered", "admitted", "failed"].map(|name| {
        let line = root.children().find(|node| class(node) == name);
        points(&line.unwrap())
    });
    for line in [&offered, &admitted, &failed] {
        assert_eq!(line.len(), slices.len());
        assert!(line.windows(2).all(|pair| pair[0][0] < pair[1][0]));
        let inside = |at: &[f64; 2]| {
            (PLOT.0[0]..=PLOT.0[1]).contains(&at[0]) && (PLOT.1[0]..=PLOT.1[1]).contains(&at[1])
        };
        assert!(line.iter().all(inside), "{line:?}");
    }
    for ((offered, admitted), failed) in offered.iter().zip(&admitted).zip(&failed) {
        assert!(offered[1] <= admitted[1] && admitted[1] <= failed[1]);
    }
    let rejected = |at: usize| slices[at]["admitted"].as_f64() < slices[at]["offered"].as_f64();
    let apart = (0..slices.len()).filter(|&at| offered[at][1] < admitted[at][1]);
    assert_eq!(
        apart.collect::<Vec<_>>(),
        (0..slices.len())
            .filter(|&at| rejected(at))
            .collect::<Vec<_>>()
    );
}

/// Axes have units, lines and colours a legend; no word is off the page.
fn words(root: Node<'_, '_>) {
    let texts: Vec<_> = root
        .children()
        .filter(|node| node.has_tag_name("text"))
        .collect();
    let all: Vec<_> = texts.iter().filter_map(Node::text).collect();
    for word in [
        "time (s)",
        "calls / s",
        "offered",
        "admitted",
        "failed",
        "closed",
        "half-open",
        "open",
    ] {
        assert!(all.contains(&word), "{word}: {all:?}");
    }
    for text in &texts {
        let [x, y] = ["x", "y"].map(|name| number(text, name));
        assert!(
            (0.0..PAGE[0]).contains(&x) && (10.0..PAGE[1]).contains(&y),
            "{text:?}"
        );
    }
    let titles = root.children().filter(|node| node.has_tag_name("title"));
    assert_eq!(titles.count(), 1, "for who can't see it");
}

fn class<'a>(node: &Node<'a, '_>) -> &'a str {
    node.attribute("class").unwrap_or_default()
}

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

fn points(line: &Node<'_, '_>) -> Vec<[f64; 2]> {
    let points = line.attribute("points").unwrap().split(' ');
    let point = |point: &str| {
        let (x, y) = point.split_once(',').unwrap();
        [x, y].map(|number| number.parse().unwrap())
    };
    points.map(point).collect()
}
