//! The token that allows actions.

use std::fmt;

use mamparo_core::InvalidSetting;
use subtle::{Choice, ConstantTimeEq};

/// As short as a token may be: 16 random characters can't be guessed.
pub const MIN_TOKEN: usize = 16;

/// As long as a token may be.
pub const MAX_TOKEN: usize = 256;

/// A token, of a length that is told by nothing that takes time.
pub(super) struct Token {
    padded: [u8; MAX_TOKEN],
    len: u64,
}

impl Token {
    /// Takes a token that is fit for it; the error does not have it.
    pub(super) fn checked(token: &str) -> Result<Self, InvalidSetting> {
        let refused = |reason| Err(InvalidSetting::new("token", "(hidden)", reason));
        if token.len() < MIN_TOKEN {
            return refused("must have at least 16 characters: make it at random");
        }
        if token.len() > MAX_TOKEN {
            return refused("must have at most 256 characters");
        }
        if !token.bytes().all(is_allowed) {
            return refused("must consist of letters, digits and -._~+/= (RFC 6750 §2.1)");
        }
        Ok(Self::of(token.as_bytes()))
    }

    fn of(token: &[u8]) -> Self {
        let mut padded = [0; MAX_TOKEN];
        let kept = token.len().min(MAX_TOKEN);
        padded[..kept].copy_from_slice(&token[..kept]);
        Self {
            padded,
            len: token.len() as u64,
        }
    }

    /// Tells whether this is the token; it takes as long wherever they differ.
    pub(super) fn is(&self, presented: &[u8]) -> bool {
        let presented = Self::of(presented);
        let same: Choice = self.padded.ct_eq(&presented.padded) & self.len.ct_eq(&presented.len);
        same.into()
    }
}

const fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}
