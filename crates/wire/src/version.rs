//! Protocol revisions.
//!
//! Invariant: a revision is here only if this crate speaks it. Deliberately no table of what each revision offers: that is
//! the business of whoever uses it.

use std::fmt;
use std::str::FromStr;

/// A revision of the protocol that begins with a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolVersion {
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
}

impl ProtocolVersion {
    /// All, oldest first.
    pub const ALL: [Self; 3] = [Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];
    /// The newest one.
    pub const LATEST: Self = Self::V2025_11_25;

    /// As it is written in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No revision that this crate speaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("protocol version {0:?} is not supported; supported are 2025-03-26, 2025-06-18 and 2025-11-25")]
pub struct UnsupportedVersion(pub String);

impl FromStr for ProtocolVersion {
    type Err = UnsupportedVersion;

    fn from_str(text: &str) -> Result<Self, UnsupportedVersion> {
        let found = Self::ALL.into_iter().find(|version| version.as_str() == text);
        found.ok_or_else(|| UnsupportedVersion(text.to_owned()))
    }
}

/// What a server answers to a client's wish: that revision if it is spoken here, else the newest.
pub fn negotiate(requested: &str) -> ProtocolVersion {
    requested.parse().unwrap_or(ProtocolVersion::LATEST)
}
