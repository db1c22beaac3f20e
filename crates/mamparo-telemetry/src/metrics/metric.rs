//! What is said of a metric.

/// A metric: its name, what it measures and by what it is broken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// The kind of its instrument.
    pub kind: Kind,
    /// Its unit, in UCUM's notation.
    pub unit: &'static str,
    /// Its attributes.
    pub attributes: &'static [&'static str],
    /// What it says.
    pub says: &'static str,
}

/// The kind of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Counts.
    Counter,
    /// Counts, and is read when metrics are collected.
    ObservableCounter,
    /// Goes up and down, can be summed up, and is read when metrics are collected.
    ObservableUpDownCounter,
    /// Says how something is, and is read when metrics are collected.
    ObservableGauge,
    /// Spreads durations, or counts, over buckets.
    Histogram,
}

impl Kind {
    /// Returns the kind's name, as OpenTelemetry writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "Counter",
            Self::ObservableCounter => "ObservableCounter",
            Self::ObservableUpDownCounter => "ObservableUpDownCounter",
            Self::ObservableGauge => "ObservableGauge",
            Self::Histogram => "Histogram",
        }
    }
}

pub(super) const fn counter(
    name: &'static str,
    unit: &'static str,
    attributes: &'static [&'static str],
    says: &'static str,
) -> Metric {
    metric(name, Kind::Counter, unit, attributes, says)
}

pub(super) const fn duration(
    name: &'static str,
    attributes: &'static [&'static str],
    says: &'static str,
) -> Metric {
    metric(name, Kind::Histogram, "s", attributes, says)
}

pub(super) const fn gauge(
    name: &'static str,
    unit: &'static str,
    attributes: &'static [&'static str],
    says: &'static str,
) -> Metric {
    metric(name, Kind::ObservableGauge, unit, attributes, says)
}

pub(super) const fn metric(
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    attributes: &'static [&'static str],
    says: &'static str,
) -> Metric {
    Metric {
        name,
        kind,
        unit,
        attributes,
        says,
    }
}
