//! What an error of a service means to who asked.

use std::error::Error;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use mamparo_durable::backend::{BackendError, Trouble};

/// Which service it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    DynamoDb,
    Sqs,
    Scheduler,
}

impl Service {
    const fn as_str(self) -> &'static str {
        match self {
            Self::DynamoDb => "DynamoDB",
            Self::Sqs => "SQS",
            Self::Scheduler => "EventBridge Scheduler",
        }
    }
}

/// Says what kind of trouble it is, in one line with its remedy; the whole story is its source.
///
/// `about` names what was asked for, such as `table mamparo-transactions`.
pub(crate) fn trouble<E>(
    service: Service,
    about: &str,
    error: SdkError<E, HttpResponse>,
) -> BackendError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let (trouble, words) = match &error {
        SdkError::ServiceError(said) => {
            let code = said.err().code().unwrap_or_default();
            by_code(code, said.err().message().unwrap_or_default(), about)
                .unwrap_or_else(|| by_status(code, said.raw().status().as_u16()))
        }
        SdkError::TimeoutError(_) => (Trouble::Unavailable, "does not answer in time".to_owned()),
        SdkError::DispatchFailure(failed) => by_dispatch(failed.is_user(), &error),
        SdkError::ResponseError(_) => (
            Trouble::Unavailable,
            "answers what can't be read".to_owned(),
        ),
        _ => (Trouble::Refused, "can't be asked this".to_owned()),
    };
    BackendError::new(trouble, format!("{} {words}", service.as_str())).from_source(error)
}

/// The errors that have a remedy of their own.
fn by_code(code: &str, message: &str, about: &str) -> Option<(Trouble, String)> {
    let found = match code {
        "ExpiredTokenException" | "ExpiredToken" => (
            Trouble::Unavailable,
            "refuses an expired token: renew the session of these credentials".to_owned(),
        ),
        "RequestTimeTooSkewed" | "RequestExpired" => (Trouble::Unavailable, skewed()),
        "InvalidSignatureException" | "SignatureDoesNotMatch" if is_about_time(message) => {
            (Trouble::Unavailable, skewed())
        }
        "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "InvalidSignatureException"
        | "SignatureDoesNotMatch"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "IncompleteSignature" => (
            Trouble::Refused,
            "does not know these credentials: check the key, its secret and the account".to_owned(),
        ),
        "AccessDeniedException" | "AccessDenied" => (
            Trouble::Refused,
            format!("denies access to {about}: attach the policy that `mamparo aws plan` prints"),
        ),
        "ResourceNotFoundException"
        | "AWS.SimpleQueueService.NonExistentQueue"
        | "QueueDoesNotExist" => (
            Trouble::Incompatible,
            format!("has no {about} in this region and account: run `mamparo aws apply`"),
        ),
        "ValidationException" if is_about_keys(message) => (
            Trouble::Incompatible,
            format!("has a {about} with another key or index: `mamparo aws check` says which"),
        ),
        "ItemCollectionSizeLimitExceededException" | "ServiceQuotaExceededException" => {
            (Trouble::Full, format!("has no room for more: {message}"))
        }
        "ThrottlingException"
        | "Throttling"
        | "ThrottledException"
        | "RequestThrottled"
        | "RequestLimitExceeded"
        | "ProvisionedThroughputExceededException"
        | "TransactionInProgressException"
        | "TransactionConflictException"
        | "LimitExceededException"
        | "OverLimit" => (Trouble::Unavailable, "is asked too much at once".to_owned()),
        _ => return None,
    };
    Some(found)
}

/// Asked again once the clock is set; the SDK itself bears what is less than that, after the first refusal.
fn skewed() -> String {
    "refuses the time of this machine's clock: set the clock".to_owned()
}

fn is_about_time(message: &str) -> bool {
    message.contains("expired") || message.contains("not yet current")
}

fn is_about_keys(message: &str) -> bool {
    message.contains("key element") || message.contains("specified index")
}

fn by_status(code: &str, status: u16) -> (Trouble, String) {
    if status >= 500 || status == 429 {
        return (Trouble::Unavailable, format!("answers {status} ({code})"));
    }
    (Trouble::Refused, format!("refuses the request: {code}"))
}

/// A name that does not resolve is a region that does not exist, or no network: the two look the same from here.
fn by_dispatch(is_user: bool, error: &dyn Error) -> (Trouble, String) {
    let why = DisplayErrorContext(error).to_string();
    if why.contains("dns error") {
        return (
            Trouble::Unavailable,
            "can't be found: check the region's name and the network".to_owned(),
        );
    }
    if why.contains("credential") || why.contains("identity") {
        return (
            Trouble::Unavailable,
            "can't be asked without credentials: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or give this machine a role".to_owned(),
        );
    }
    if is_user {
        return (Trouble::Refused, "can't be asked this".to_owned());
    }
    (Trouble::Unavailable, "does not answer".to_owned())
}
