//! Secrets become `«domain:hex16»` before anything reaches the disk.
//!
//! Invariant: equal secrets give equal tokens under one key, redacting twice changes nothing, and bytes outside a replaced
//! string stay as they are. JSON inside strings is looked into. JSON-RPC ids and progress tokens are exempt by position:
//! the host makes them, and they tie messages together. Deliberately only what the credential registry knows.

use std::fmt;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use greenroom_boundary::{Credentials, Entropy};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::json::{Node, Value, embedded, quote, splice};

/// Names the rules of this module in a head.
pub const RULES: &str = "registry-1";
/// How many levels of JSON inside strings are looked into.
const MAX_EMBEDDED: usize = 4;

/// The project's key for tokens. Never written down.
#[derive(Clone)]
pub struct RedactionKey(Vec<u8>);

impl fmt::Debug for RedactionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedactionKey({})", self.id())
    }
}

impl RedactionKey {
    /// The project's own key: its recordings have comparable tokens.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// A fresh key for one recording.
    pub fn generate(entropy: &dyn Entropy) -> Self {
        Self((0..4).flat_map(|_| entropy.next_u64().to_be_bytes()).collect())
    }

    /// Tells keys apart without revealing them.
    pub fn id(&self) -> String {
        self.hex("", "key-id")[..8].to_owned()
    }

    fn hex(&self, domain: &str, value: &str) -> String {
        // HMAC takes keys of any length; the error type is uninhabited in practice.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return "0".repeat(16) };
        mac.update(domain.as_bytes());
        mac.update(&[0]);
        mac.update(value.as_bytes());
        hex::encode(&mac.finalize().into_bytes()[..8])
    }
}

/// Replaces secrets.
#[derive(Clone, Debug)]
pub struct Redactor {
    credentials: Credentials,
    key: RedactionKey,
}

/// A spelling of a secret, and what replaces it.
struct Secret {
    spelling: String,
    token: String,
}

impl Redactor {
    /// A redactor over a registry. Values registered later count from then on.
    pub fn new(credentials: Credentials, key: RedactionKey) -> Self {
        Self { credentials, key }
    }

    /// Names the key.
    pub fn key_id(&self) -> String {
        self.key.id()
    }

    /// Plain text without secrets.
    pub fn text(&self, text: &str) -> String {
        mask(text, &self.secrets(), 0).unwrap_or_else(|| text.to_owned())
    }

    /// JSON text without secrets; text that is not JSON is treated as plain text.
    pub fn json(&self, text: &str) -> String {
        let secrets = self.secrets();
        if secrets.is_empty() {
            return text.to_owned();
        }
        match Node::parse(text) {
            Ok(node) => mask_json(text, &node, &secrets, 0).unwrap_or_else(|| text.to_owned()),
            Err(_) => mask(text, &secrets, 0).unwrap_or_else(|| text.to_owned()),
        }
    }

    /// Whether plain or JSON text still holds a secret.
    pub fn finds(&self, text: &str) -> bool {
        self.json(text) != text
    }

    /// The registered values that are long enough to be looked for in raw bytes, where a chance hit is out of the question.
    pub fn long_values(&self) -> Vec<String> {
        self.credentials.entries().into_iter().map(|(_, value)| value).filter(|value| value.len() >= 12).collect()
    }

    fn secrets(&self) -> Vec<Secret> {
        let mut all = Vec::new();
        for (name, value) in self.credentials.entries() {
            let domain: String = name.chars().filter(|c| !matches!(c, '«' | '»' | ':') && !c.is_control()).collect();
            let token = format!("«{domain}:{}»", self.key.hex(&domain, &value));
            let escaped = quote(&value);
            let escaped = &escaped[1..escaped.len() - 1];
            if escaped != value {
                all.push(Secret { spelling: escaped.to_owned(), token: token.clone() });
            }
            all.push(Secret { spelling: value, token });
        }
        all.sort_by_key(|secret| std::cmp::Reverse(secret.spelling.len()));
        all
    }
}

/// The text with secrets replaced, `None` if there are none.
fn mask(text: &str, secrets: &[Secret], level: usize) -> Option<String> {
    if level < MAX_EMBEDDED
        && let Some(node) = embedded(text)
    {
        return mask_json(text, &node, secrets, level + 1);
    }
    if !secrets.iter().any(|secret| text.contains(&secret.spelling)) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(first) = rest.chars().next() {
        // A token that is already there is kept whole, as a short secret might occur in its name or digits.
        if first == '«'
            && let Some(secret) = secrets.iter().find(|secret| rest.starts_with(&secret.token))
        {
            out.push_str(&secret.token);
            rest = &rest[secret.token.len()..];
        } else if let Some(secret) = secrets.iter().find(|secret| rest.starts_with(&secret.spelling)) {
            out.push_str(&secret.token);
            rest = &rest[secret.spelling.len()..];
            changed = true;
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    changed.then_some(out)
}

fn mask_json(text: &str, node: &Node, secrets: &[Secret], level: usize) -> Option<String> {
    let mut edits = Vec::new();
    collect(node, &mut Vec::new(), secrets, level, &mut edits);
    (!edits.is_empty()).then(|| splice(text, edits))
}

fn collect(node: &Node, path: &mut Vec<String>, secrets: &[Secret], level: usize, edits: &mut Vec<(Range<usize>, String)>) {
    match &node.value {
        Value::Atom(spelling) => {
            if let Some(secret) = secrets.iter().find(|secret| secret.spelling == *spelling) {
                edits.push((node.span.clone(), quote(&secret.token)));
            }
        }
        Value::Text(text) => {
            if let Some(masked) = mask(text, secrets, level) {
                edits.push((node.span.clone(), quote(&masked)));
            }
        }
        Value::Array(items) => {
            path.push("*".to_owned());
            for item in items {
                collect(item, path, secrets, level, edits);
            }
            path.pop();
        }
        Value::Object(members) => {
            let frame = path.is_empty() && node.get("jsonrpc").is_some();
            for member in members {
                if let Some(masked) = mask(&member.name, secrets, MAX_EMBEDDED) {
                    edits.push((member.name_span.clone(), quote(&masked)));
                }
                path.push(if frame { format!("rpc.{}", member.name) } else { member.name.clone() });
                if member.name.ends_with("b64")
                    && let Some(masked) = member.node.text().and_then(|text| mask_base64(text, secrets))
                {
                    edits.push((member.node.span.clone(), quote(&masked)));
                } else if !is_structural(path) {
                    collect(&member.node, path, secrets, level, edits);
                }
                path.pop();
            }
        }
    }
}

/// Bytes that are no text: what holds a secret is kept as text, with replacement characters.
fn mask_base64(encoded: &str, secrets: &[Secret]) -> Option<String> {
    let bytes = STANDARD.decode(encoded).ok()?;
    let masked = mask(&String::from_utf8_lossy(&bytes), secrets, MAX_EMBEDDED)?;
    Some(STANDARD.encode(masked))
}

fn is_structural(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(
        path.as_slice(),
        ["rpc.id"] | ["rpc.params", "requestId" | "progressToken"] | ["rpc.params", "_meta", "progressToken"]
    )
}

/// The text with the digests of tokens left out, so that a request matches although the secret, or the key, is another now.
pub fn without_digests(text: &str) -> String {
    if !text.contains('«') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('«') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let token = rest.find('»').map(|end| &rest['«'.len_utf8()..end]);
        match token.and_then(|token| token.rsplit_once(':')) {
            Some((domain, digits)) if digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                out.push('«');
                out.push_str(domain);
                out.push('»');
                rest = &rest['«'.len_utf8() + domain.len() + 1 + digits.len() + '»'.len_utf8()..];
            }
            _ => {
                out.push('«');
                rest = &rest['«'.len_utf8()..];
            }
        }
    }
    out.push_str(rest);
    out
}
