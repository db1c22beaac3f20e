//! The breaker's time line as a picture: what was offered, admitted and failed, over the breaker's states.
//!
//! [`chart`] says what stands where, [`svg`] writes it down. It is a page of text with some rectangles and lines, for which
//! a library would be more code than it saves.

mod chart;
mod svg;

pub(super) use chart::plot;
