//! The picture of a chain: all of it is on the page, nothing lies on anything else, and it needs nothing from elsewhere.

use insta::assert_snapshot;
use roxmltree::{Document, Node};

use crate::check::{policies, stdout};

const DRAWN: [&str; 3] = [
    "at/drawn/web.toml",
    "at/drawn/orders.toml",
    "at/drawn/catalog.toml",
];

async fn drawn(files: &[&str]) -> String {
    let args = [&["check", "--svg"], files].concat();
    let ran = policies(&args).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    stdout(&ran)
}

#[derive(Clone, Copy, Debug)]
struct Area {
    x: [f64; 2],
    y: [f64; 2],
}

impl Area {
    fn number(node: Node<'_, '_>, name: &str) -> f64 {
        node.attribute(name).unwrap_or("0").parse().unwrap()
    }

    fn of_box(node: Node<'_, '_>) -> Self {
        let [x, y, width, height] = ["x", "y", "width", "height"].map(|it| Self::number(node, it));
        Self {
            x: [x, x + width],
            y: [y, y + height],
        }
    }

    /// As wide as a common sans-serif font writes it.
    fn of_text(node: Node<'_, '_>) -> Self {
        let half = node.text().unwrap().chars().count() as f64 * 6.5 / 2.0;
        let [x, y] = ["x", "y"].map(|it| Self::number(node, it));
        let x = match node.attribute("text-anchor") {
            Some("middle") => [x - half, x + half],
            _ => [x, x + 2.0 * half],
        };
        Self {
            x,
            y: [y - 10.0, y + 3.0],
        }
    }

    fn is_in(&self, page: &Self) -> bool {
        page.x[0] <= self.x[0]
            && self.x[1] <= page.x[1]
            && page.y[0] <= self.y[0]
            && self.y[1] <= page.y[1]
    }

    fn meets(&self, other: &Self) -> bool {
        self.x[0] < other.x[1]
            && other.x[0] < self.x[1]
            && self.y[0] < other.y[1]
            && other.y[0] < self.y[1]
    }
}

fn of_class<'a>(document: &'a Document<'_>, class: &str) -> Vec<Node<'a, 'a>> {
    let nodes = document.root_element().children();
    let is_of = |node: &Node<'_, '_>| {
        let classes = node.attribute("class").unwrap_or_default();
        classes.split(' ').any(|it| it == class)
    };
    nodes.filter(is_of).collect()
}

#[tokio::test]
async fn nothing_is_off_the_page_or_on_anything_else() {
    let svg = drawn(&DRAWN).await;
    let document = Document::parse(&svg).expect("well-formed XML");
    let page = Area::of_box(of_class(&document, "page")[0]);
    let mut boxes = of_class(&document, "service");
    boxes.extend(of_class(&document, "dependency"));
    assert_eq!(boxes.len(), 6);
    let mut areas: Vec<_> = boxes.into_iter().map(Area::of_box).collect();
    let labels = of_class(&document, "label");
    assert_eq!(
        labels.len(),
        2 * 9,
        "what a service calls of itself stands in its box"
    );
    areas.extend(labels.into_iter().map(Area::of_text));
    for (at, one) in areas.iter().enumerate() {
        assert!(one.is_in(&page), "{one:?} is not on {page:?}");
        let met = areas[at + 1..].iter().find(|other| one.meets(other));
        assert!(met.is_none(), "{one:?} lies on {met:?}");
    }
    let texts = document
        .descendants()
        .filter(|node| node.has_tag_name("text"));
    for text in texts {
        assert!(Area::of_text(text).is_in(&page), "{text:?}");
    }
}

/// Two calls go around in a circle: one of them points back, at its outer end.
#[tokio::test]
async fn each_call_is_an_arrow_and_points_where_it_goes() {
    let svg = drawn(&DRAWN).await;
    let document = Document::parse(&svg).expect("well-formed XML");
    let arrows = of_class(&document, "arrow");
    let with = |end: &str| {
        arrows
            .iter()
            .filter(|arrow| arrow.has_attribute(end))
            .count()
    };
    assert_eq!(
        (arrows.len(), with("marker-end"), with("marker-start")),
        (9, 8, 1)
    );
    assert_eq!(of_class(&document, "again").len(), 6);
    let desc = document
        .descendants()
        .find(|node| node.has_tag_name("desc"));
    let told = desc.and_then(|node| node.text()).unwrap_or_default();
    assert!(
        told.contains("web calls orders: 3 attempts × 2 by linkerd, 3s."),
        "{told}"
    );
}

#[tokio::test]
async fn a_name_is_shown_as_it_is_and_the_picture_needs_nothing_else() {
    let svg = drawn(&DRAWN).await;
    assert!(!svg.contains('\u{7}'), "XML has no such character");
    let document = Document::parse(&svg).expect("well-formed XML");
    let names = of_class(&document, "name");
    let names: Vec<_> = names.iter().filter_map(Node::text).collect();
    assert!(names.contains(&"<psp> & \"co\"\u{fffd}"), "{names:?}");
    let style = document
        .descendants()
        .find(|node| node.has_tag_name("style"));
    let style = style.and_then(|node| node.text()).unwrap_or_default();
    assert!(style.contains("prefers-color-scheme:dark"), "{style}");
    assert!(!svg.contains("href") && !svg.contains("@import") && !svg.contains("<script"));
    assert_eq!(svg.matches("http").count(), 1, "the namespace alone");
}

#[tokio::test]
async fn a_chain_is_drawn_from_the_outside_inward_with_what_it_comes_to() {
    let files = ["gateway", "orders", "inventory"].map(|name| format!("at/chain/{name}.toml"));
    let svg = drawn(&files.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert!(svg.contains("at worst 4 × 4 × 4 = 64 calls"), "{svg}");
    assert_snapshot!(svg);
}

/// Refused files are drawn as far as they could be read, and their errors told beside the picture.
#[tokio::test]
async fn refused_files_are_drawn_and_their_errors_told() {
    let ran = policies(&["check", "--svg", "at/dangerous.toml"]).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("error[attempts-exceed-deadline]"),
        "{}",
        ran.stderr
    );
    let svg = String::from_utf8(ran.stdout).expect("text");
    let document = Document::parse(&svg).expect("well-formed XML");
    assert_eq!(of_class(&document, "dependency").len(), 3);
}
