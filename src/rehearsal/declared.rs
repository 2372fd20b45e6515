//! The hooks of a config as coverage counts them: what can come of each, how deep, after which others.
//!
//! Invariant: order comes from the table that the router uses, so that coverage cannot disagree with the host. What a
//! script calls under a name that it computes is not seen: list such servers in the agent's `mcp`. Deliberately nothing
//! is run.

use std::collections::{BTreeMap, BTreeSet};

use greenroom_boundary::trace::{HookMode, HookPhase};
use greenroom_boundary::{AgentId, ServerName};
use greenroom_harness::cover::{DeclaredHook, HookDepth, HookFormName, HookOutcome};

use super::reach::Reach;
use crate::config::{AgentConfig, HostConfig, ScriptConfig, ServerKind};
use crate::hooks::{HookBinding, HookForm, HookTable, HookTarget, Side};
use crate::scripts::ScriptLibrary;

/// The text of a script and of what it imports; empty if it cannot be read.
pub(super) fn code(library: &ScriptLibrary, script: &ScriptConfig) -> String {
    if let Ok(script) = library.load(script) {
        return script.modules.iter().fold(script.code.to_string(), |text, module| text + "\n" + &module.code);
    }
    match script {
        ScriptConfig::File(path) => std::fs::read_to_string(path).unwrap_or_default(),
        ScriptConfig::Inline { code, .. } => code.clone(),
    }
}

/// All hooks of a config.
pub(super) fn hooks(config: &HostConfig) -> Vec<DeclaredHook> {
    let reach = Reach::of(config);
    let mut all = Vec::new();
    message_hooks(config, &reach, &mut all);
    for (id, agent) in &config.agents {
        agent_hooks(config, &reach, id, agent, &mut all);
    }
    host_hooks(config, &mut all);
    all
}

/// The host's own hooks: what its outside clients ask passes them, turns do not.
fn host_hooks(config: &HostConfig, all: &mut Vec<DeclaredHook>) {
    let session = config.host_hooks.session.iter().map(|hook| (hook, HookPhase::Session));
    let messages = config.host_hooks.messages.iter().map(|hook| (hook, hook.side.phase()));
    for (binding, phase) in session.chain(messages) {
        let mut cannot = BTreeMap::new();
        let form = match (phase, binding.form) {
            (HookPhase::Session, HookForm::Envelope { may_mutate: true }) => HookFormName::Session,
            (HookPhase::Session, HookForm::Envelope { may_mutate: false }) => HookFormName::SessionValidator,
            _ => plain_form(binding, &mut cannot),
        };
        limits(config, binding, false, &mut cannot);
        all.push(DeclaredHook {
            id: binding.id.clone(),
            form,
            phase,
            boundary: "host".to_owned(),
            method: binding.matcher.method.clone().filter(|method| !method.contains('*')),
            mode: binding.mode,
            depths: BTreeSet::from([HookDepth::Zero]),
            not_deeper: "it looks at outside clients, and no hook is one".to_owned(),
            cannot,
            after: Vec::new(),
            ends_silently: false,
        });
    }
}

/// `(method, name)` pairs that tell the matchers of a server apart. A pattern stands for itself: it matches its own text.
pub(super) fn samples(config: &HostConfig, server: &ServerName) -> Vec<(String, String)> {
    let own = || config.hooks.iter().filter(|hook| hook.server == *server).map(|hook| &hook.binding.matcher);
    let mut methods: BTreeSet<String> =
        own().filter_map(|matcher| matcher.method.clone()).filter(|method| !method.contains('*')).collect();
    methods.insert(CALL.to_owned());
    let mut names: BTreeSet<String> = own().filter_map(|matcher| matcher.name.clone()).collect();
    names.insert(String::new());
    methods.iter().flat_map(|method| names.iter().map(move |name| (method.clone(), name.clone()))).collect()
}

/// The only method by which agents, scripts and hooks call servers.
pub(super) const CALL: &str = "tools/call";

fn message_hooks(config: &HostConfig, reach: &Reach, all: &mut Vec<DeclaredHook>) {
    let table = HookTable::of(config);
    let servers: BTreeSet<&ServerName> = config.hooks.iter().map(|hook| &hook.server).collect();
    for server in servers {
        let first = all.len();
        let own: Vec<&HookBinding> =
            config.hooks.iter().filter(|hook| hook.server == *server).map(|hook| &hook.binding).collect();
        let place = |hook: &HookBinding| own.iter().position(|known| *known == hook);
        let mut before: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (method, name) in samples(config, server) {
            let chain = table.chain(server, &method, &name, &[]);
            for side in [chain.request, chain.response] {
                let places: Vec<usize> = side.iter().filter_map(|hook| place(hook)).collect();
                for (later, hook) in places.iter().enumerate() {
                    let earlier = places[..later].iter().filter(|earlier| meet(own[**earlier], own[*hook]));
                    before.entry(*hook).or_default().extend(earlier);
                }
            }
        }
        for (index, binding) in own.iter().enumerate() {
            let earlier: Vec<usize> = before.remove(&index).unwrap_or_default().into_iter().collect();
            let ends = earlier.iter().any(|place| ends_chain(own[*place]));
            let mut hook = message_hook(config, reach, server, binding, ends);
            hook.after = earlier.iter().map(|place| first + place).collect();
            all.push(hook);
        }
    }
}

/// Whether both look at some answer.
fn meet(a: &HookBinding, b: &HookBinding) -> bool {
    match (a.matcher.call_on_error, b.matcher.call_on_error) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    }
}

/// Whether its failure ends the chain. A validator is not counted on: the ones behind it may be asked all the same.
fn ends_chain(hook: &HookBinding) -> bool {
    hook.form.is_mutator() && hook.mode == HookMode::Enforce && !hook.fail_open
}

fn message_hook(
    config: &HostConfig,
    reach: &Reach,
    server: &ServerName,
    binding: &HookBinding,
    can_be_skipped: bool,
) -> DeclaredHook {
    let mut cannot = BTreeMap::new();
    let form = plain_form(binding, &mut cannot);
    limits(config, binding, can_be_skipped, &mut cannot);
    let kind = match config.servers.get(server).map(|server| &server.kind) {
        Some(ServerKind::External(_)) => "mcp",
        Some(_) => "server",
        None => "agent",
    };
    let (depths, not_deeper) = reach.message(server, binding);
    DeclaredHook {
        id: binding.id.clone(),
        form,
        phase: if binding.side == Side::Request { HookPhase::Request } else { HookPhase::Response },
        boundary: format!("{kind}.{server}"),
        // A pattern may stand for several methods; the id, side and boundary tell such hooks apart.
        method: binding.matcher.method.clone().filter(|method| !method.contains('*')),
        mode: binding.mode,
        depths,
        not_deeper,
        cannot,
        after: Vec::new(),
        ends_silently: false,
    }
}

type Cannot = BTreeMap<HookOutcome, String>;

/// How a hook is written.
fn plain_form(binding: &HookBinding, cannot: &mut Cannot) -> HookFormName {
    let mut never = |outcome: HookOutcome, reason: &str| drop(cannot.insert(outcome, reason.to_owned()));
    match binding.form {
        HookForm::Envelope { may_mutate: true } => HookFormName::Envelope,
        HookForm::Envelope { may_mutate: false } => HookFormName::EnvelopeValidator,
        HookForm::Mutate => {
            never(HookOutcome::Rejected, "it returns a message: it has no word for refusing one");
            HookFormName::Mutate
        }
        HookForm::Validate => {
            never(HookOutcome::Mutated, "it returns a verdict: it has no word for another message");
            HookFormName::Validate
        }
    }
}

/// What cannot come of a hook where it stands.
fn limits(config: &HostConfig, binding: &HookBinding, can_be_skipped: bool, cannot: &mut Cannot) {
    let mut never = |outcome: HookOutcome, reason: &str| drop(cannot.insert(outcome, reason.to_owned()));
    if binding.form == (HookForm::Envelope { may_mutate: false }) {
        never(HookOutcome::Mutated, "under `!mutate:` a change is a refusal");
    }
    if !can_be_skipped {
        never(HookOutcome::Skipped, "no mutator that fails closed runs before it");
    }
    if !is_script(config, &binding.target) {
        never(HookOutcome::Heap, "its target is no script: its memory is not the host's");
    }
}

fn is_script(config: &HostConfig, target: &HookTarget) -> bool {
    matches!(config.servers.get(&target.server).map(|server| &server.kind), Some(ServerKind::Script(_)))
}

fn agent_hooks(config: &HostConfig, reach: &Reach, id: &AgentId, agent: &AgentConfig, all: &mut Vec<DeclaredHook>) {
    let (depths, not_deeper) = reach.agent(id);
    let plain = |hook: String, form: HookFormName, phase: HookPhase| DeclaredHook {
        id: hook,
        form,
        phase,
        boundary: format!("agent.{id}"),
        method: Some("turn".to_owned()),
        mode: HookMode::Enforce,
        depths: depths.clone(),
        not_deeper: not_deeper.clone(),
        cannot: BTreeMap::new(),
        after: Vec::new(),
        ends_silently: true,
    };
    let needs_model = agent.connector.is_some();
    for phase in [HookPhase::Config, HookPhase::Request, HookPhase::Response] {
        let first = all.len();
        let chain = agent.hooks.of(phase);
        for (place, binding) in chain.iter().enumerate() {
            let mut cannot = BTreeMap::new();
            let form = match binding.form {
                HookForm::Envelope { may_mutate: true } => HookFormName::Turn,
                HookForm::Envelope { may_mutate: false } => HookFormName::TurnValidator,
                HookForm::Mutate | HookForm::Validate => plain_form(binding, &mut cannot),
            };
            let mut hook = plain(binding.id.clone(), form, phase);
            hook.mode = binding.mode;
            hook.ends_silently = false;
            limits(config, binding, chain[..place].iter().any(ends_chain), &mut cannot);
            hook.cannot = cannot;
            hook.after = (first..first + place).collect();
            if phase != HookPhase::Config && !needs_model {
                hook.depths.clear();
                "the agent asks no model".clone_into(&mut hook.not_deeper);
            }
            all.push(hook);
        }
    }
    let library = ScriptLibrary::of(config);
    let code = agent.script.as_ref().map(|script| code(&library, script)).unwrap_or_default();
    let functions = [("Create", HookFormName::Create, HookPhase::Create), ("Next", HookFormName::Next, HookPhase::Next)];
    for (function, form, phase) in functions.into_iter().filter(|(function, ..)| has_word(&code, function)) {
        let mut hook = plain(format!("{id}/{function}"), form, phase);
        let refusing = "it has no word for refusing: what it throws is a failure";
        hook.cannot.insert(HookOutcome::Rejected, refusing.to_owned());
        hook.cannot.insert(HookOutcome::Skipped, "it is alone in its chain".to_owned());
        all.push(hook);
    }
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).any(|part| part == word)
}

/// The depth classes of a set of depths.
pub(super) fn classes(depths: &BTreeSet<usize>) -> BTreeSet<HookDepth> {
    depths.iter().map(|depth| HookDepth::of(u32::try_from(*depth).unwrap_or(u32::MAX))).collect()
}
