//! Who owns the resends where two could.

/// What an owner of resends, a retry or a hedge, does inside of another one, and around one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Nested {
    /// The outer one owns the resends: this one sends once when it is inside another.
    #[default]
    Inherit,
    /// The inner one owns the resends: this one stops once another inside it has resent.
    Single,
    /// Both resend, and their attempts multiply.
    Multiply,
}
