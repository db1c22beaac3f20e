//! One header and its form.

use std::time::{Duration, SystemTime};

use http::{HeaderName, HeaderValue};
use mamparo_core::InvalidSetting;

use super::told::{Lead, Malformed, Remaining, Told};
use super::whole::Whole;
use super::{absolute, grpc};

/// One header that carries a deadline, and how it is written.
///
/// ```
/// use mamparo::wire::codec::{DeadlineHeader, Remaining};
/// use std::time::{Duration, SystemTime};
///
/// let wall = SystemTime::UNIX_EPOCH;
/// let header = DeadlineHeader::grpc_timeout();
/// let value = header.write(Duration::from_millis(1_500), wall);
/// assert_eq!(value, "1500000u");
/// assert_eq!(header.read(&value, wall)?, Remaining::For(Duration::from_millis(1_500)));
/// # Ok::<(), mamparo::wire::codec::Malformed>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineHeader {
    name: HeaderName,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Grpc,
    Whole(Whole),
    EpochMillis,
    Rfc3339,
    Finagle,
}

impl DeadlineHeader {
    /// Carries a deadline as gRPC does: `grpc-timeout`, up to eight digits and a unit (gRPC over HTTP/2, "Requests").
    #[must_use]
    pub fn grpc_timeout() -> Self {
        Self::fixed("grpc-timeout", Form::Grpc)
    }

    /// Carries a deadline in `x-request-timeout-ms`, relative milliseconds: the default for HTTP.
    #[must_use]
    pub fn request_timeout_ms() -> Self {
        Self::fixed("x-request-timeout-ms", Form::Whole(Whole::MILLIS))
    }

    /// Carries a deadline as the Connect protocol does: `connect-timeout-ms`, up to ten digits, zero is expired.
    #[must_use]
    pub fn connect_timeout_ms() -> Self {
        Self::fixed("connect-timeout-ms", Form::Whole(Whole::CONNECT))
    }

    /// Carries a deadline as Envoy tells an upstream: `x-envoy-expected-rq-timeout-ms`, where zero is infinite.
    #[must_use]
    pub fn envoy_expected_timeout_ms() -> Self {
        let form = Form::Whole(Whole::MILLIS.zero_is_infinite());
        Self::fixed("x-envoy-expected-rq-timeout-ms", form)
    }

    /// Carries a deadline as Finagle does: absolute, base64 of two big-endian counts of nanoseconds since 1970,
    /// when it was set and when it ends, in `finagle-ctx-com.twitter.finagle.deadline`.
    #[must_use]
    pub fn finagle() -> Self {
        Self::fixed("finagle-ctx-com.twitter.finagle.deadline", Form::Finagle)
    }

    /// Carries a deadline as relative milliseconds under any name; zero is expired.
    ///
    /// # Errors
    ///
    /// Refuses a name that no HTTP header can have.
    pub fn millis(name: &str) -> Result<Self, InvalidSetting> {
        Self::named(name, Form::Whole(Whole::MILLIS))
    }

    /// Carries a deadline as relative seconds under any name; zero is expired.
    ///
    /// Coarse: what is less than a second is written as one second.
    ///
    /// # Errors
    ///
    /// Refuses a name that no HTTP header can have.
    pub fn seconds(name: &str) -> Result<Self, InvalidSetting> {
        Self::named(name, Form::Whole(Whole::SECONDS))
    }

    /// Carries a deadline as an absolute count of milliseconds since 1970 under any name.
    ///
    /// # Errors
    ///
    /// Refuses a name that no HTTP header can have.
    pub fn epoch_millis(name: &str) -> Result<Self, InvalidSetting> {
        Self::named(name, Form::EpochMillis)
    }

    /// Carries a deadline as an absolute time under any name, as in RFC 3339 section 5.6.
    ///
    /// Read with `Z` or an offset such as `+02:00`, with or without a fraction; the `T` and `Z` in capitals, years
    /// from 1970 to 9999. Written in UTC with milliseconds.
    ///
    /// # Errors
    ///
    /// Refuses a name that no HTTP header can have.
    pub fn rfc3339(name: &str) -> Result<Self, InvalidSetting> {
        Self::named(name, Form::Rfc3339)
    }

    /// Reads zero as "no limit" instead of "expired", as `x-envoy-upstream-rq-timeout-ms` means it.
    ///
    /// ```
    /// use mamparo::wire::codec::{DeadlineHeader, Remaining};
    /// let header = DeadlineHeader::millis("x-envoy-upstream-rq-timeout-ms")?.zero_is_infinite()?;
    /// let read = header.read(&"0".parse().unwrap(), std::time::SystemTime::UNIX_EPOCH);
    /// assert_eq!(read, Ok(Remaining::Infinite));
    /// # Ok::<(), mamparo_core::InvalidSetting>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Refuses a form other than relative milliseconds or seconds: those say themselves what zero means.
    pub fn zero_is_infinite(self) -> Result<Self, InvalidSetting> {
        let Form::Whole(whole) = self.form else {
            let reason = "must be relative milliseconds or seconds to read zero as infinite";
            return Err(InvalidSetting::new("deadline header", self.name, reason));
        };
        let form = Form::Whole(whole.zero_is_infinite());
        Ok(Self { form, ..self })
    }

    /// Returns the header's name.
    #[must_use]
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// Tells whether the value is a time of day, and so only as good as both clocks.
    #[must_use]
    pub fn is_absolute(&self) -> bool {
        matches!(self.form, Form::EpochMillis | Form::Rfc3339 | Form::Finagle)
    }

    /// Reads how much time one value leaves, without allocating; only absolute forms look at `wall`.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the value is not exactly of this form, whatever bytes it has.
    pub fn read(&self, value: &HeaderValue, wall: SystemTime) -> Result<Remaining, Malformed> {
        self.told(value, wall).map(Told::remaining)
    }

    pub(super) fn told(&self, value: &HeaderValue, wall: SystemTime) -> Result<Told, Malformed> {
        let text = value.as_bytes().trim_ascii();
        let deadline = match self.form {
            Form::Grpc => return grpc::read(text).map(Told::Relative),
            Form::Whole(whole) => return whole.read(text).map(Told::Relative),
            Form::EpochMillis => absolute::read_epoch_millis(text)?,
            Form::Rfc3339 => absolute::read_rfc3339(text)?,
            Form::Finagle => absolute::read_finagle(text)?,
        };
        Ok(Told::Absolute(Lead::of(deadline, wall)))
    }

    /// Writes what remains, rounded down; less than one unit of the form is written as one unit, never as zero.
    ///
    /// A call with nothing left must not be sent at all; if it is written nevertheless, it says one unit.
    /// What the form cannot hold, up to [`Duration::MAX`], is written as the longest that it can.
    #[must_use]
    pub fn write(&self, remaining: Duration, wall: SystemTime) -> HeaderValue {
        match self.form {
            Form::Grpc => grpc::write(remaining),
            Form::Whole(whole) => whole.write(remaining),
            Form::EpochMillis => absolute::write_epoch_millis(remaining, wall),
            Form::Rfc3339 => absolute::write_rfc3339(remaining, wall),
            Form::Finagle => absolute::write_finagle(remaining, wall),
        }
    }

    fn fixed(name: &'static str, form: Form) -> Self {
        let name = HeaderName::from_static(name);
        Self { name, form }
    }

    fn named(name: &str, form: Form) -> Result<Self, InvalidSetting> {
        match HeaderName::try_from(name) {
            Ok(name) => Ok(Self { name, form }),
            Err(_) => {
                let reason = "must be the name of an HTTP header";
                Err(InvalidSetting::new("deadline header", name, reason))
            }
        }
    }
}
