//! What a handler's result means.

use std::error::Error;
use std::fmt::{self, Display};

use mamparo_core::classify::known_error;
use mamparo_core::{BoxError, Classify, Head, Kind, Resend, Verdict, chain};

/// An error that no other attempt would mend: a body that is no JSON, a field that is missing, an order that doesn't exist.
///
/// Found anywhere among an error's causes, it sends the message to the dead letters at once.
///
/// ```
/// use mamparo_rabbitmq::Permanent;
///
/// let error = Permanent::new("the field \"amount\" is missing");
/// assert_eq!(error.to_string(), "the field \"amount\" is missing");
/// ```
#[derive(Debug)]
pub struct Permanent(BoxError);

impl Permanent {
    /// Says what is wrong with the message.
    #[must_use]
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

impl Display for Permanent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, f)
    }
}

impl Error for Permanent {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Judges handlers of messages: what is [`Permanent`] is not tried again, every other error is.
///
/// Refine it for answers and errors of your own:
///
/// ```
/// use mamparo_core::{BoxError, Classify, Kind, Resend, Verdict};
/// use mamparo_rabbitmq::MessageClass;
///
/// let classifier = Classify::<u16>::refine(MessageClass, |answer: Result<&u16, &BoxError>, verdict: Verdict| match answer {
///     Ok(&402) => Verdict::failure(Kind::Client, Resend::Never), // refused for good
///     Ok(&503) => Verdict::failure(Kind::Unavailable, Resend::IfIdempotent),
///     _ => verdict,
/// });
/// assert_eq!(classifier.head(Ok(&402)).verdict.resend(), Resend::Never);
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has no settings")]
pub struct MessageClass;

impl<Res> Classify<Res> for MessageClass {
    fn head(&self, outcome: Result<&Res, &BoxError>) -> Head {
        Head::last(match outcome {
            Ok(_) => Verdict::SUCCESS,
            Err(error) if chain::find::<Permanent>(&**error).is_some() => {
                Verdict::failure(Kind::Client, Resend::Never)
            }
            Err(error) => {
                let known = known_error(error).filter(|known| known.kind().is_some());
                known
                    .unwrap_or(Verdict::failure(Kind::Other, Resend::IfIdempotent))
                    .with_resend(Resend::IfIdempotent)
            }
        })
    }
}
