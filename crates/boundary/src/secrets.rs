//! The credential registry: which values are secret, so that nothing writes them down.
//!
//! Invariant: a value registered before it is used never reaches a cassette, trace, report or log unmasked. Deliberately
//! no storage: it lives and dies with the host.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Secret values by where they come from (`llm.main/apiKey`). Clones share one registry.
#[derive(Clone, Default)]
pub struct Credentials(Arc<RwLock<BTreeMap<String, String>>>);

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.read().unwrap_or_else(PoisonError::into_inner).len();
        write!(f, "Credentials({count})")
    }
}

impl Credentials {
    /// Registers a value; values shorter than 4 bytes are ignored, as masking them would damage ordinary text.
    pub fn register(&self, name: impl Into<String>, value: impl Into<String>) {
        let value = value.into();
        if value.len() >= 4 {
            self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), value);
        }
    }

    /// All registered (name, value) pairs, longest value first so that a value that contains another is masked whole.
    pub fn entries(&self) -> Vec<(String, String)> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = map.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        all.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.cmp(b)));
        all
    }

    /// The text with every registered value replaced by `«secret:NAME»`.
    pub fn mask(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for (name, value) in self.entries() {
            if masked.contains(&value) {
                masked = masked.replace(&value, &format!("«secret:{name}»"));
            }
        }
        masked
    }
}
