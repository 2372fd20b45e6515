//! Record, replay, and what happens when the host does something else.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use greenroom_boundary::cli::{CliError, CliEvent, CliExit, CliLimits, CliRunner, CliStream, CommandSpec};
use greenroom_boundary::clock::sleep;
use greenroom_boundary::llm::{LlmError, LlmEvent, Usage};
use greenroom_boundary::trace::Outcome;
use greenroom_boundary::{CancellationToken, Clock, Credentials, Llm, McpConnector};
use greenroom_harness::cassette::{Cassette, Line, Status};
use greenroom_harness::record::{RecordingCli, RecordingLlm, RecordingMcp, SealError};
use greenroom_harness::replay::{Mode, Replay, ReplayOptions};
use greenroom_mocks::clock::VirtualClock;
use serde_json::{Value, json};

use crate::cassette_doubles::{
    LlmDouble, McpDouble, Session, call, clock, complete, finish, recording, request, result, run, target, text,
};

type Log = Arc<Mutex<Vec<String>>>;

fn server() -> Arc<McpDouble> {
    McpDouble::new(|server, message| {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") => vec![result(id, json!({ "server": server }))],
            Some("tools/call") => {
                let token = &message["params"]["_meta"]["progressToken"];
                vec![
                    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": 1 } }).to_string(),
                    json!({ "jsonrpc": "2.0", "id": "ask-1", "method": "sampling/createMessage", "params": {} }).to_string(),
                    // Spelt as no serializer would spell it.
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"n\":1.50,  \"of\":\"{server}\"}}}}"),
                ]
            }
            Some("bye") => vec!["END".to_owned()],
            _ => Vec::new(),
        }
    })
}

fn model() -> Arc<LlmDouble> {
    let usage = Ok(LlmEvent::Usage(Usage { input_tokens: 12, output_tokens: 3 }));
    let call = Ok(LlmEvent::ToolCall {
        index: 0,
        id: Some("call_a".into()),
        name: Some("refund".into()),
        arguments: "{\"order\":881}".into(),
    });
    LlmDouble::new(vec![Ok(vec![call, finish()]), Ok(vec![text("Done"), text("."), usage, finish()])])
}

/// Ids start at `first_id`, so that live ids can differ from recorded ones.
struct Host {
    llm: Arc<dyn Llm>,
    mcp: Arc<dyn McpConnector>,
    log: Log,
    first_id: u64,
}

impl Host {
    fn note(&self, line: impl Into<String>) {
        self.log.lock().unwrap().push(line.into());
    }

    /// Asks the model, calls two servers at once, asks the model again.
    async fn turn(&self, user: &str, order: u64) {
        for piece in complete(&*self.llm, request("main", user)).await {
            self.note(piece);
        }
        let (shop, bank) = (self.server("shop", order), self.server("bank", order));
        futures::future::join(shop, bank).await;
        for piece in complete(&*self.llm, request("main", "and now?")).await {
            self.note(piece);
        }
    }

    async fn server(&self, name: &str, order: u64) {
        let mut session = match self.mcp.open(&target(name), &CancellationToken::new()).await {
            Ok(duplex) => Session(duplex),
            Err(error) => return self.note(format!("{name}: {}", error.code())),
        };
        let id = self.first_id;
        let initialize = json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": {} }).to_string();
        let frames = [
            initialize,
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
            call(id + 1, "refund", json!({ "order": order })),
        ];
        for (frame, answers) in frames.into_iter().zip([1, 0, 3]) {
            if let Err(error) = session.send(frame).await {
                return self.note(format!("{name}: {}", error.code()));
            }
            for _ in 0..answers {
                let frame = session.next().await;
                self.note(format!("{name}: {frame}"));
                if frame.contains("ask-1") {
                    let _ = session.send(result(&json!("ask-1"), json!({ "role": "assistant" }))).await;
                }
            }
        }
        session.0.sink.close().await;
    }
}

fn host(llm: Arc<dyn Llm>, mcp: Arc<dyn McpConnector>, first_id: u64) -> Host {
    Host { llm, mcp, log: Log::default(), first_id }
}

/// Records a session of the host on these drivers; the answer is what the host saw.
fn record(path: &Path, llm: Arc<dyn Llm>, mcp: Arc<dyn McpConnector>, credentials: &Credentials, user: &str) -> Vec<String> {
    let clock = clock();
    let recording = recording(path, &clock, credentials);
    let host =
        host(Arc::new(RecordingLlm::new(llm, recording.clone())), Arc::new(RecordingMcp::new(mcp, recording.clone())), 1);
    run(&clock, async {
        let stim = recording.stim("turn", "t1", &json!({ "user": user }));
        host.turn(user, 881).await;
        recording.stim_end(stim, Outcome::Ok, &json!({ "text": "Done." }));
    });
    recording.seal().unwrap();
    host.log.lock().unwrap().clone()
}

fn replay(path: &Path, clock: &VirtualClock, mode: Mode) -> Arc<Replay> {
    Replay::load(path, ReplayOptions { mode, clock: Some(clock.clone()), ..ReplayOptions::default() }).unwrap()
}

fn taped() -> (tempfile::TempDir, std::path::PathBuf, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.cas");
    let log = record(&path, model(), server(), &Credentials::default(), "refund 881");
    (folder, path, log)
}

#[test]
fn record_replay_record_is_a_fixed_point() {
    let (folder, path, seen) = taped();
    let again = folder.path().join("again.cas");
    let replayed = Replay::load(&path, ReplayOptions::default()).unwrap();
    let seen_again = record(&again, replayed.llm(), replayed.mcp(), &Credentials::default(), "refund 881");
    assert_eq!(seen_again, seen);
    assert_eq!(std::fs::read_to_string(&again).unwrap(), std::fs::read_to_string(&path).unwrap());
    assert_eq!((replayed.problems(), replayed.unused()), (vec![], vec![]));
}

#[test]
fn a_recording_reads_well() {
    let (_folder, path, _) = taped();
    insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap());
}

#[test]
fn frames_come_byte_for_byte_but_for_the_ids_of_now() {
    let (_folder, path, seen) = taped();
    let clock = clock();
    let replayed = replay(&path, &clock, Mode::Strict);
    let host = host(replayed.llm(), replayed.mcp(), 70);
    run(&clock, host.turn("refund 881", 881));
    let expected: Vec<String> = seen
        .iter()
        .map(|line| line.replace("\"id\":2", "\"id\":71").replace("\"id\":1", "\"id\":70").replace("Token\":2", "Token\":71"))
        .collect();
    assert_eq!(*host.log.lock().unwrap(), expected);
    assert_eq!((replayed.problems(), replayed.unused()), (vec![], vec![]));
}

#[test]
fn a_replay_needs_no_order_in_keyed_mode() {
    let (_folder, path, seen) = taped();
    let clock = clock();
    let replayed = replay(&path, &clock, Mode::Keyed);
    let host = host(replayed.llm(), replayed.mcp(), 1);
    run(&clock, async {
        // Against the recorded order: the servers first, the model last.
        host.server("bank", 881).await;
        host.server("shop", 881).await;
        complete(&*host.llm, request("main", "and now?")).await;
        complete(&*host.llm, request("main", "refund 881")).await;
    });
    let mut lines = host.log.lock().unwrap().clone();
    lines.sort();
    let mut expected: Vec<String> =
        seen.into_iter().filter(|line| line.starts_with("shop") || line.starts_with("bank")).collect();
    expected.sort();
    assert_eq!(lines, expected);
    assert_eq!((replayed.problems(), replayed.unused()), (vec![], vec![]));
}

#[test]
fn what_was_not_recorded_is_a_miss_that_says_why() {
    let (_folder, path, _) = taped();
    let clock = clock();
    let replayed = replay(&path, &clock, Mode::Strict);
    let host = host(replayed.llm(), replayed.mcp(), 1);
    run(&clock, async {
        host.turn("refund 881", 882).await;
        complete(&*replayed.llm(), request("main", "hello?")).await;
        complete(&*replayed.llm(), request("other", "hello?")).await;
        assert_eq!(replayed.mcp().open(&target("absent"), &CancellationToken::new()).await.unwrap_err().code(), "MCP_DENIED");
    });
    let problems: Vec<String> = replayed.problems().iter().map(|problem| format!("{} {problem}", problem.code())).collect();
    assert!(problems.iter().all(|problem| problem.lines().count() <= 12));
    let unused: Vec<String> = replayed.unused().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(format!("{}\n\n{}", problems.join("\n\n"), unused.join("\n")));
}

#[test]
fn a_request_asked_once_more_than_recorded_is_a_miss() {
    let (_folder, path, _) = taped();
    let clock = clock();
    let replayed = replay(&path, &clock, Mode::Keyed);
    let pieces = run(&clock, async {
        complete(&*replayed.llm(), request("main", "and now?")).await;
        complete(&*replayed.llm(), request("main", "and now?")).await
    });
    insta::assert_snapshot!(pieces.join("\n"), @r"
    LLM_UNAVAILABLE: replay miss: llm.main chat
      recorded 1 times, asked once more
    ");
}

#[test]
fn no_planted_secret_reaches_the_disk_and_a_new_secret_still_matches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.cas");
    let secrets = |value: &str| {
        let credentials = Credentials::default();
        credentials.register("llm.main/apiKey", value);
        credentials
    };
    let first = r#"{"key":"sk-first-secret-0001"}"#;
    let leaky = McpDouble::new(move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            vec![result(&message["id"], json!({ "echo": "Bearer sk-first-secret-0001" })), "{}".to_owned(), "{}".to_owned()]
        }
        Some("initialize") => vec![result(&message["id"], json!({ "sk-first-secret-0001": [first] }))],
        _ => Vec::new(),
    });
    record(&path, model(), leaky, &secrets("sk-first-secret-0001"), first);
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(!written.contains("sk-first-secret"), "{written}");
    // The key was rotated since: the live request differs in the secret alone.
    let clock = clock();
    let credentials = secrets("sk-other-secret-0002");
    let replayed = Replay::load(&path, ReplayOptions { credentials, ..ReplayOptions::default() }).unwrap();
    let host = host(replayed.llm(), replayed.mcp(), 1);
    run(&clock, host.turn(r#"{"key":"sk-other-secret-0002"}"#, 881));
    assert_eq!((replayed.problems(), replayed.unused()), (vec![], vec![]));
}

#[test]
fn a_secret_cut_into_pieces_or_registered_too_late_keeps_the_file_unsealed() {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    for (name, early) in [("pieces", true), ("late", false)] {
        let path = folder.path().join(name);
        let credentials = Credentials::default();
        let recording = recording(&path, &clock, &credentials);
        if early {
            credentials.register("llm.main/apiKey", "sk-first-secret-0001");
        }
        let double = LlmDouble::new(vec![Ok(vec![text("it is sk-first-"), text("secret-0001"), finish()])]);
        let llm = RecordingLlm::new(double, recording.clone());
        run(&clock, complete(&llm, request("main", "say it")));
        credentials.register("llm.main/apiKey", "sk-first-secret-0001");
        assert!(matches!(recording.seal(), Err(SealError::Residual { .. })), "{name}");
        assert!(!path.exists());
    }
}

#[test]
fn a_killed_session_leaves_a_prefix_that_replays() {
    let (folder, path, seen) = taped();
    let whole = std::fs::read(&path).unwrap();
    // As a kill would leave it: a torn line at the end, under the partial's name.
    let torn = folder.path().join("torn.cas");
    std::fs::write(folder.path().join("torn.cas.partial"), &whole[..whole.len() * 2 / 3]).unwrap();
    let cassette = Cassette::load(&torn).unwrap();
    assert_eq!(cassette.status, Status::Aborted);
    let clock = clock();
    let replayed = replay(&torn, &clock, Mode::Strict);
    let host = host(replayed.llm(), replayed.mcp(), 1);
    run(&clock, async {
        let turn = Box::pin(host.turn("refund 881", 881));
        let deadline = clock.now().after(Duration::from_secs(60));
        let _ = greenroom_boundary::clock::timeout_at(&clock, deadline, turn).await;
        complete(&*replayed.llm(), request("main", "later")).await;
    });
    let log = host.log.lock().unwrap().clone();
    let missed =
        log.iter().position(|line| line.contains("MCP_DENIED") || line.contains("LLM_UNAVAILABLE")).unwrap_or(log.len());
    assert!(missed > 2 && seen.starts_with(&log[..missed]), "{log:?}");
    let problems: Vec<String> = replayed.problems().iter().map(ToString::to_string).collect();
    assert!(problems.iter().any(|problem| problem.contains("the recording breaks off")), "{problems:?}");
}

#[test]
fn a_cancelled_completion_waits_to_be_cancelled_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.cas");
    let clock = clock();
    let ask = async |llm: &dyn Llm, after: usize| {
        let cancel = CancellationToken::new();
        let mut stream = llm.stream(request("main", "go on"), &cancel).await.unwrap();
        let mut seen = Vec::new();
        for _ in 0..after {
            seen.push(stream.next().await);
        }
        cancel.cancel();
        seen.push(stream.next().await);
        seen
    };
    let recording = recording(&path, &clock, &Credentials::default());
    let llm = RecordingLlm::new(LlmDouble::new(vec![Ok(vec![text("a"), text("b")])]), recording.clone());
    let seen = run(&clock, ask(&llm, 2));
    assert_eq!(seen[2], Some(Err(LlmError::Cancelled { connector: "main".into() })));
    recording.seal().unwrap();
    for (after, problems) in [(2, vec![]), (1, vec!["REPLAY_ABANDONED"])] {
        let replayed = replay(&path, &clock, Mode::Strict);
        let again = run(&clock, ask(&*replayed.llm(), after));
        assert_eq!(again.last(), seen.last());
        assert_eq!(replayed.problems().iter().map(|problem| problem.code()).collect::<Vec<_>>(), problems);
    }
}

#[test]
fn failures_are_given_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.cas");
    let status =
        LlmError::Status { connector: "main".into(), status: 429, message: "slow down".into(), retry_after_ms: Some(1500) };
    let broken = LlmError::Transport { connector: "main".into(), message: "reset".into() };
    let session = async |llm: &dyn Llm, mcp: &dyn McpConnector| {
        let mut seen = Vec::new();
        for _ in 0..2 {
            let stream = llm.stream(request("main", "hi"), &CancellationToken::new()).await;
            seen.push(match stream {
                Err(error) => format!("{error:?}"),
                Ok(stream) => format!("{:?}", stream.collect::<Vec<_>>().await),
            });
        }
        seen.push(format!("{:?}", mcp.open(&target("absent"), &CancellationToken::new()).await.err()));
        let mut shop = Session::open(mcp, "shop").await;
        shop.send(json!({ "jsonrpc": "2.0", "method": "bye" }).to_string()).await.unwrap();
        seen.push(shop.next().await);
        seen.push(shop.next().await);
        seen
    };
    let clock = clock();
    let recording = recording(&path, &clock, &Credentials::default());
    let llm = RecordingLlm::new(LlmDouble::new(vec![Err(status), Ok(vec![text("a"), Err(broken)])]), recording.clone());
    let mcp = RecordingMcp::new(server(), recording.clone());
    let seen = run(&clock, session(&llm, &mcp));
    recording.seal().unwrap();
    let replayed = replay(&path, &clock, Mode::Strict);
    assert_eq!(run(&clock, session(&*replayed.llm(), &*replayed.mcp())), seen);
    assert!(seen[0].contains("429") && seen[2].contains("Unreachable") && seen[3] == "END", "{seen:?}");
    assert_eq!((replayed.problems(), replayed.unused()), (vec![], vec![]));
}

#[derive(Debug)]
struct CliDouble;

#[async_trait::async_trait]
impl CliRunner for CliDouble {
    async fn run(&self, command: CommandSpec, _cancel: &CancellationToken) -> Result<CliStream, CliError> {
        let events = match command.stdin.as_str() {
            "fail" => return Err(CliError::Start { program: command.argv[0].clone(), message: "absent".into() }),
            "slow" => vec![Err(CliError::Timeout { program: command.argv[0].clone(), limit_ms: 5 })],
            _ => vec![
                Ok(CliEvent::Stdout(vec![0xff, 0x00].into())),
                Ok(CliEvent::Stderr("oh".into())),
                Ok(CliEvent::Exit(CliExit::Code(3))),
            ],
        };
        Ok(futures::stream::iter(events).boxed())
    }
}

#[test]
fn command_runs_are_given_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.cas");
    let session = async |cli: &dyn CliRunner| {
        let mut seen = Vec::new();
        for stdin in ["", "slow", "fail"] {
            let command = CommandSpec {
                argv: vec!["/bin/tool".into(), "-x".into()],
                env: BTreeMap::default(),
                stdin: stdin.into(),
                limits: CliLimits::default(),
            };
            seen.push(match cli.run(command, &CancellationToken::new()).await {
                Err(error) => format!("{error:?}"),
                Ok(stream) => format!("{:?}", stream.collect::<Vec<_>>().await),
            });
        }
        seen
    };
    let clock = clock();
    let recording = recording(&path, &clock, &Credentials::default());
    let seen = run(&clock, session(&RecordingCli::new(Arc::new(CliDouble), recording.clone())));
    assert_eq!(recording.seal().unwrap().exchanges, 3);
    let replayed = replay(&path, &clock, Mode::Strict);
    assert_eq!(run(&clock, session(&*replayed.cli())), seen);
    assert_eq!((replayed.problems(), replayed.unused()), (vec![], vec![]));
}

#[test]
fn lanes_that_are_not_replayed_do_not_hold_up_the_others() {
    let (_folder, path, _) = taped();
    let clock = clock();
    let options = ReplayOptions { lanes: vec!["llm.*".into()], clock: Some(clock.clone()), ..ReplayOptions::default() };
    let replayed = Replay::load(&path, options).unwrap();
    let host = host(replayed.llm(), server(), 1);
    run(&clock, host.turn("refund 881", 881));
    assert_eq!((replayed.problems(), replayed.unused()), (vec![], vec![]));
    assert!(host.log.lock().unwrap().iter().any(|line| line.contains("Done")));
}

#[test]
fn paced_replay_keeps_the_recorded_times_and_stimuli_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.cas");
    let recorded = clock();
    let recording = recording(&path, &recorded, &Credentials::default());
    let llm = RecordingLlm::new(
        LlmDouble::new(vec![Ok(vec![text("a"), finish()]), Ok(vec![text("b"), finish()])]),
        recording.clone(),
    );
    run(&recorded, async {
        for turn in ["t1", "t2"] {
            sleep(&recorded, Duration::from_secs(5)).await;
            let stim = recording.stim("turn", turn, &json!({ "user": turn }));
            complete(&llm, request("main", turn)).await;
            recording.stim_end(stim, Outcome::Ok, &Value::Null);
        }
    });
    recording.seal().unwrap();
    let clock = clock();
    let options = ReplayOptions { stimuli: true, paced: true, clock: Some(clock.clone()), ..ReplayOptions::default() };
    let replayed = Replay::load(&path, options).unwrap();
    let mut turns = Vec::new();
    run(&clock, async {
        while let Some(stimulus) = replayed.next_stimulus().await {
            complete(&*replayed.llm(), request("main", stimulus.body["user"].as_str().unwrap())).await;
            replayed.stimulus_ended(stimulus.seq);
            turns.push((stimulus.scope, clock.now().0 / 1_000_000_000));
        }
    });
    assert_eq!(turns, [("t1".to_owned(), 5), ("t2".to_owned(), 10)]);
    assert_eq!(replayed.unused(), vec![]);
}

#[test]
fn a_full_disk_fails_the_recording_and_not_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.cas");
    let clock = clock();
    let recording = recording(&path, &clock, &Credentials::default());
    let huge = LlmDouble::new(vec![Ok(vec![text(&"x".repeat(17 << 20)), finish()])]);
    let llm = RecordingLlm::new(huge, recording.clone());
    assert_eq!(run(&clock, complete(&llm, request("main", "hi"))).len(), 2);
    assert!(matches!(recording.seal(), Err(SealError::Lost { lost: 1, .. })));
    assert!(!path.exists());
    let lines = Cassette::load(&path).unwrap().lines;
    assert!(matches!(lines.last(), Some(Line::Close(_))));
}
