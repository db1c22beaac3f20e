//! A short hash for what must be told apart but not shown: 64-bit FNV-1a (IETF draft-eastlake-fnv).

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Hashes bytes; the same in every process and version.
///
/// ```
/// assert_eq!(mamparo_core::fnv::hash(b"a"), 0xaf63_dc4c_8601_ec8c);
/// ```
#[must_use]
pub const fn hash(bytes: &[u8]) -> u64 {
    let mut hash = OFFSET_BASIS;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(PRIME);
        at += 1;
    }
    hash
}
