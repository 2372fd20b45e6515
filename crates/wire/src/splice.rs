//! Changed frames: rewrites the id, the progress token or the params of a frame where they stand.
//!
//! Invariant: every byte outside the rewritten spot stays as it was; what has to be added goes right before the closing
//! brace of its object. Deliberately no other edits: whoever changes more writes new params.

use std::ops::Range;

use greenroom_boundary::mcp::Frame;
use serde_json::value::RawValue;

use crate::envelope::Members;
use crate::{Envelope, ProgressToken, RawJson, RequestId, WireError};

/// What to rewrite; what is `None` stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edits<'a> {
    /// A new id.
    pub id: Option<&'a RequestId>,
    /// New params.
    pub params: Option<&'a RawValue>,
    /// A new `params._meta.progressToken`, also when `params` are new.
    pub progress_token: Option<&'a ProgressToken>,
}

/// The frame with `edits` made.
pub fn splice(frame: &Frame, edits: &Edits<'_>) -> Result<Frame, WireError> {
    let envelope = Envelope::parse(frame)?;
    let mut patches = Vec::new();
    if let Some(id) = edits.id {
        patches.push(put(envelope.text, "id", envelope.id, &id.to_json()));
    }
    match (edits.params, edits.progress_token) {
        (None, None) => {}
        (Some(params), None) => patches.push(put(envelope.text, "params", envelope.params, params.get())),
        (new, Some(token)) => match new.or(envelope.params).filter(|raw| raw.get() != "null") {
            Some(old) if new.is_none() => {
                let offset = offset_in(envelope.text, old);
                patches.extend(token_patch(old.get(), token)?.map(|patch| patch.shifted(offset)));
            }
            Some(new) => {
                let params = with_token(new.get(), token)?;
                patches.push(put(envelope.text, "params", envelope.params, &params));
            }
            None => {
                let params = format!("{{\"_meta\":{{\"progressToken\":{token}}}}}");
                patches.push(put(envelope.text, "params", envelope.params, &params));
            }
        },
    }
    Ok(Frame::from(apply(envelope.text, patches)))
}

/// The params of a request with `token` as their `_meta.progressToken`.
pub fn params_with_token(params: Option<&RawValue>, token: &ProgressToken) -> Result<RawJson, WireError> {
    let text = match params.map(RawValue::get) {
        None | Some("null") => format!("{{\"_meta\":{{\"progressToken\":{token}}}}}"),
        Some(text) => with_token(text, token)?,
    };
    RawValue::from_string(text).map_err(|error| WireError::json(&error))
}

/// The token in a request's `params._meta.progressToken`, if there is a valid one.
pub fn progress_token_of(params: Option<&RawValue>) -> Option<ProgressToken> {
    let params = Members::parse(params?.get()).ok()?;
    let meta = Members::parse(params.get("_meta")?.get()).ok()?;
    RequestId::from_raw(meta.get("progressToken")?)
}

/// The params of a progress notification with `token` as their `progressToken`.
pub fn progress_params(params: &RawValue, token: &ProgressToken) -> Result<RawJson, WireError> {
    let text = params.get();
    let members = object(text, "params")?;
    let patch = put(text, "progressToken", members.get("progressToken"), &token.to_json());
    RawValue::from_string(apply(text, vec![patch])).map_err(|error| WireError::json(&error))
}

struct Patch {
    span: Range<usize>,
    text: String,
}

impl Patch {
    fn shifted(mut self, offset: usize) -> Self {
        self.span = self.span.start + offset..self.span.end + offset;
        self
    }
}

fn object<'a>(text: &'a str, what: &'static str) -> Result<Members<'a>, WireError> {
    Members::parse(text).map_err(|error| match error {
        WireError::NotAnObject | WireError::Batch => WireError::BadParams { what },
        other => other,
    })
}

fn with_token(params: &str, token: &ProgressToken) -> Result<String, WireError> {
    Ok(apply(params, token_patch(params, token)?.into_iter().collect()))
}

/// The patch that puts `token` into the text of params; `None` if it is there already.
fn token_patch(params: &str, token: &ProgressToken) -> Result<Option<Patch>, WireError> {
    let members = object(params, "params")?;
    let Some(meta) = members.get("_meta").filter(|raw| raw.get() != "null") else {
        let value = format!("{{\"progressToken\":{token}}}");
        return Ok(Some(put(params, "_meta", members.get("_meta"), &value)));
    };
    let old = object(meta.get(), "params._meta")?.get("progressToken");
    let json = token.to_json();
    if old.is_some_and(|raw| raw.get() == json) {
        return Ok(None);
    }
    Ok(Some(put(meta.get(), "progressToken", old, &json).shifted(offset_in(params, meta))))
}

/// Replaces the member `old` of the object `text`, or adds it as the last one.
fn put(text: &str, key: &str, old: Option<&RawValue>, value: &str) -> Patch {
    if let Some(raw) = old {
        let start = offset_in(text, raw);
        return Patch { span: start..start + raw.get().len(), text: value.to_owned() };
    }
    let end = text.rfind('}').unwrap_or(text.len());
    let comma = if text[..end].trim_end().ends_with('{') { "" } else { "," };
    Patch { span: end..end, text: format!("{comma}\"{key}\":{value}") }
}

/// Where a borrowed member stands in the text it was borrowed from.
fn offset_in(text: &str, part: &RawValue) -> usize {
    part.get().as_ptr() as usize - text.as_ptr() as usize
}

fn apply(text: &str, mut patches: Vec<Patch>) -> String {
    patches.sort_by_key(|patch| patch.span.start);
    let mut out = String::with_capacity(text.len() + patches.iter().map(|patch| patch.text.len()).sum::<usize>());
    let mut at = 0;
    for patch in patches {
        out.push_str(&text[at..patch.span.start]);
        out.push_str(&patch.text);
        at = patch.span.end;
    }
    out.push_str(&text[at..]);
    out
}
