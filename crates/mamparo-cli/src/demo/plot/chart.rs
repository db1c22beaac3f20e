//! What stands where in the picture.

use super::svg::{Anchor, Picture};
use crate::demo::protection::{Band, Outage, SLICE, Slice};

/// The picture's size, and the edges of what is plotted.
const SIZE: (f64, f64) = (960.0, 440.0);
const LEFT: f64 = 64.0;
const RIGHT: f64 = 940.0;
const TOP: f64 = 104.0;
const BOTTOM: f64 = 380.0;

/// The names of the states stand in a strip above.
const STRIP: f64 = 20.0;

/// A narrower band has no room for its name.
const NAMED_FROM: f64 = 64.0;

/// No band is so short that it could not be seen.
const MIN_BAND: f64 = 2.0;

const GRID: &str = "#c8c8c8";
const AXIS: &str = "#1a1a1a";

/// What a line shows, its colour, its dashes, and what it counts.
type Line = (&'static str, &'static str, &'static str, fn(&Slice) -> u32);

/// The lines; their dashes tell them apart where colours don't.
const LINES: [Line; 3] = [
    ("offered", "#5c5c5c", "2 4", |slice| slice.offered),
    ("admitted", "#0b5cad", "none", |slice| slice.admitted),
    ("failed", "#b3140a", "7 3", |slice| slice.failed),
];

/// The states, and the colour of each.
const STATES: [(&str, &str); 3] = [
    ("closed", "#dff0df"),
    ("half_open", "#ffc93c"),
    ("open", "#f6cfca"),
];

/// From what happened to where it stands.
struct Scale {
    until_ms: f64,
    most: f64,
}

/// Draws the time line of an outage.
pub(in crate::demo) fn plot(outage: &Outage) -> String {
    let (bands, line) = (&outage.bands, &outage.time_line);
    let scale = Scale::of(bands, line);
    let title = "A dependency goes down and comes back, behind a circuit breaker";
    let mut picture = Picture::new(SIZE.0, SIZE.1, title);
    picture.text("heading", Anchor::Start, (LEFT, 28.0), title);
    for band in bands {
        draw_band(&mut picture, &scale, band);
    }
    draw_axes(&mut picture, &scale);
    for (name, colour, dashes, count) in LINES {
        let points = line.iter().map(|slice| {
            let middle = slice.at_ms + half_slice();
            (scale.x(middle), scale.y(per_second(count(slice))))
        });
        picture.line((name, colour), dashes, points);
    }
    draw_legend(&mut picture);
    picture.finish()
}

fn draw_band(picture: &mut Picture, scale: &Scale, band: &Band) {
    let (from, until) = (scale.x(band.from_ms), scale.x(band.until_ms));
    let width = (until - from).max(MIN_BAND).min(RIGHT - from);
    let fill = STATES.iter().find(|(state, _)| *state == band.state);
    let fill = fill.map_or("#eeeeee", |(_, fill)| *fill);
    let name = band.state.replace('_', "-");
    let (from_ms, until_ms) = (band.from_ms, band.until_ms);
    let title = format!("{name}, {from_ms:.0} ms to {until_ms:.0} ms");
    let class = format!("band {}", band.state);
    let top = TOP - STRIP;
    picture.rect((&class, fill), (from, top), (width, BOTTOM - top), &title);
    if width >= NAMED_FROM {
        let at = (from + width / 2.0, TOP - 6.0);
        picture.text("state", Anchor::Middle, at, &name);
    }
}

fn draw_axes(picture: &mut Picture, scale: &Scale) {
    for step in 0..=4 {
        let calls = scale.most * f64::from(step) / 4.0;
        let y = scale.y(calls);
        picture.rule(GRID, (LEFT, y), (RIGHT, y));
        let at = (LEFT - 8.0, y + 4.0);
        picture.text("tick", Anchor::End, at, &format!("{calls:.0}"));
    }
    let halves = (scale.until_ms / 500.0).floor() as u32;
    for half in 0..=halves {
        let ms = f64::from(half) * 500.0;
        let x = scale.x(ms);
        picture.rule(AXIS, (x, BOTTOM), (x, BOTTOM + 5.0));
        let at = (x, BOTTOM + 20.0);
        picture.text("tick", Anchor::Middle, at, &format!("{:.1}", ms / 1e3));
    }
    picture.rule(AXIS, (LEFT, BOTTOM), (RIGHT, BOTTOM));
    picture.rule(AXIS, (LEFT, TOP), (LEFT, BOTTOM));
    let middle = f64::midpoint(LEFT, RIGHT);
    picture.text("unit", Anchor::Middle, (middle, BOTTOM + 44.0), "time (s)");
    picture.text("unit", Anchor::Start, (8.0, TOP - STRIP - 8.0), "calls / s");
}

/// Names and colours of lines and states, in one row below the heading.
fn draw_legend(picture: &mut Picture) {
    let mut x = LEFT + 90.0;
    let y = 56.0;
    for (name, colour, dashes, _) in LINES {
        picture.line(("key", colour), dashes, [(x, y), (x + 32.0, y)]);
        picture.text("legend", Anchor::Start, (x + 38.0, y + 4.0), name);
        x += 124.0;
    }
    for (state, colour) in STATES {
        picture.rect(("key", colour), (x, y - 8.0), (24.0, 16.0), "");
        let name = state.replace('_', "-");
        picture.text("legend", Anchor::Start, (x + 30.0, y + 4.0), &name);
        x += 112.0;
    }
}

impl Scale {
    /// As wide as the bands, and as high as the highest line, rounded up to what can be read.
    fn of(bands: &[Band], line: &[Slice]) -> Self {
        let until_ms = bands.last().map_or(1.0, |band| band.until_ms);
        let counts = line
            .iter()
            .flat_map(|slice| LINES.map(|(_, _, _, count)| count(slice)));
        let most = per_second(counts.max().unwrap_or(0));
        Self {
            until_ms: until_ms.max(1.0),
            most: (most / 40.0).ceil().max(1.0) * 40.0,
        }
    }

    fn x(&self, ms: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (ms / self.until_ms).clamp(0.0, 1.0)
    }

    fn y(&self, calls: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * (calls / self.most)
    }
}

fn per_second(calls: u32) -> f64 {
    f64::from(calls) / SLICE.as_secs_f64()
}

fn half_slice() -> f64 {
    SLICE.as_secs_f64() * 1e3 / 2.0
}
