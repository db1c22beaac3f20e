//! Writing SVG.

use std::fmt::Display;

/// A picture that is being drawn.
#[derive(Debug)]
pub(super) struct Picture(String);

/// Where a text begins, ends, or has its middle.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Picture {
    /// Begins a picture of that size, on white, with a title for who can't see it.
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let mut picture = Self(String::new());
        picture.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#1a1a1a\">"
        ));
        picture.add(format_args!("<title>{}</title>", escaped(title)));
        picture.rect(("page", "#ffffff"), (0.0, 0.0), (width, height), "");
        picture
    }

    /// Adds a filled rectangle of a class and a colour; a title shows where the pointer rests.
    pub(super) fn rect(
        &mut self,
        (class, fill): (&str, &str),
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        title: &str,
    ) {
        let title = match title {
            "" => String::new(),
            title => format!("<title>{}</title>", escaped(title)),
        };
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
             fill=\"{fill}\">{title}</rect>"
        ));
    }

    /// Adds a line through points; `dashes` as in `stroke-dasharray`.
    pub(super) fn line(
        &mut self,
        (class, stroke): (&str, &str),
        dashes: &str,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) {
        let mut places = String::new();
        for (x, y) in points {
            places += &format!("{x:.2},{y:.2} ");
        }
        let places = places.trim_end();
        self.add(format_args!(
            "<polyline class=\"{class}\" points=\"{places}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dashes}\"/>"
        ));
    }

    /// Adds a thin line of an axis or a grid.
    pub(super) fn rule(&mut self, stroke: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.add(format_args!(
            "<line x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\" stroke=\"{stroke}\"/>"
        ));
    }

    /// Adds a line of text.
    pub(super) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// Ends the picture.
    pub(super) fn finish(mut self) -> String {
        self.add(format_args!("</svg>"));
        self.0
    }

    fn add(&mut self, element: impl Display) {
        self.0 += &format!(
            "{element}
"
        );
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
