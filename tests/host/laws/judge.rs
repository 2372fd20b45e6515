//! What a chain should do: the reference model.
//!
//! Invariant: it is written from the documentation, not from the code. Deliberately slow and plain.

use greenroom::hooks::Side;
use greenroom_boundary::trace::HookVerdict;
use greenroom_boundary::trace::HookVerdict::{Error, Mutated, Rejected, Skipped, Timeout, Unchanged};

use super::plan::{Does, Hook, Key, World};

/// What is expected of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Judged {
    /// Ids of the hooks that changed the message, in order.
    pub(super) trail: Vec<usize>,
    /// Each hook's verdict, in running order.
    pub(super) verdicts: Vec<(usize, HookVerdict)>,
    /// Ids of the hooks whose word stops the message; the first decides.
    pub(super) against: Vec<usize>,
}

/// What is expected of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expected {
    pub(super) request: Judged,
    /// Nothing, if the request was stopped.
    pub(super) response: Option<Judged>,
}

impl Expected {
    /// All verdicts, in running order.
    pub(super) fn verdicts(&self) -> Vec<(usize, HookVerdict)> {
        let response = self.response.iter().flat_map(|judged| judged.verdicts.clone());
        self.request.verdicts.iter().copied().chain(response).collect()
    }

    /// Ids of the hooks that decided against the message.
    pub(super) fn against(&self) -> &[usize] {
        self.response.as_ref().map_or(&self.request.against, |judged| &judged.against)
    }
}

/// The verdict of a hook that is asked, and whether it is a failure, which `failOpen` excuses.
fn word(hook: &Hook) -> (HookVerdict, bool) {
    match hook.does {
        Does::Accepts | Does::ChangesInSecret => (Unchanged, false),
        Does::SaysEmpty if hook.may_mutate => (Unchanged, false),
        Does::Mutates if hook.may_mutate => (Mutated, false),
        Does::Mutates | Does::Rejects => (Rejected, false),
        Does::SaysEmpty | Does::Throws | Does::Answers(_) => (Error, true),
        Does::Hangs => (Timeout, true),
    }
}

/// The hooks of one side, in running order.
pub(super) fn chain(world: &World, side: Side, is_error: bool) -> Vec<Hook> {
    let asked = |hook: &Hook| {
        hook.side.is_none_or(|wanted| wanted == side)
            && hook.method != Key::Other
            && hook.name != Key::Other
            && (side == Side::Request || hook.call_on_error.is_none_or(|wanted| wanted == is_error))
    };
    let mut hooks: Vec<(usize, Hook)> = world.hooks.iter().copied().enumerate().filter(|(_, hook)| asked(hook)).collect();
    hooks.sort_by_key(|(declared, hook)| (!hook.may_mutate, hook.priority, *declared));
    hooks.into_iter().map(|(_, hook)| hook).collect()
}

fn side(hooks: &[Hook]) -> Judged {
    let mut judged = Judged::default();
    let mut value_is_lost = false;
    for hook in hooks {
        if value_is_lost {
            judged.verdicts.push((hook.id, Skipped));
            continue;
        }
        let (verdict, is_failure) = word(hook);
        judged.verdicts.push((hook.id, verdict));
        let stops = !(matches!(verdict, Unchanged | Mutated) || is_failure && hook.fail_open);
        if hook.audit {
            continue;
        }
        if verdict == Mutated {
            judged.trail.push(hook.id);
        }
        if stops {
            judged.against.push(hook.id);
            value_is_lost = hook.may_mutate;
        }
    }
    judged
}

/// What should happen.
pub(super) fn judge(world: &World) -> Expected {
    let request = side(&chain(world, Side::Request, false));
    let response = request.against.is_empty().then(|| side(&chain(world, Side::Response, world.fails)));
    Expected { request, response }
}
