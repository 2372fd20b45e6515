//! Children under a keeper: what only a keeper can promise, and what must not change because of it.
//!
//! Invariant: every process that a test starts is looked for afterwards by its number.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use greenroom::drivers::SystemClock;
use greenroom::drivers::mcp::{RealMcp, RealMcpLimits};
use greenroom::drivers::sandbox::{ChildEnvironment, ChildKeeper, ConfinedCli};
use greenroom_boundary::cli::{CliEvent, CliExit};
use greenroom_boundary::conformance;
use greenroom_boundary::conformance::cli::{collect, command};
use greenroom_boundary::conformance::mcp::connect;
use greenroom_boundary::mcp::McpError;
use greenroom_boundary::{CancellationToken, CliRunner};
use serde_json::{Value, json};
use test_case::test_case;

use crate::mcp::{answer, call, conform, connector, end, open, process, reference, result};
use crate::processes::gone;

fn keeper() -> ChildKeeper {
    ChildKeeper::program(env!("CARGO_BIN_EXE_greenroom"))
}

fn kept() -> RealMcp {
    connector().kept_by(keeper())
}

fn runner() -> ConfinedCli {
    ConfinedCli::new(Arc::new(SystemClock::new()), ChildEnvironment::of_this_process()).kept_by(keeper())
}

async fn all_gone(pids: &Value) {
    for (who, pid) in pids.as_object().unwrap() {
        assert!(gone(i32::try_from(pid.as_i64().unwrap()).unwrap()).await, "{who} lives on");
    }
}

#[tokio::test]
async fn servers_conform() {
    conform(&kept()).await;
}

#[tokio::test]
async fn commands_conform() {
    conformance::cli::all(&runner()).await;
}

#[derive(Clone, Copy)]
enum Ending {
    Close,
    Drop,
    Crash,
    Leave,
}

#[test_case(Ending::Close; "when it is closed")]
#[test_case(Ending::Drop; "when it is dropped")]
#[test_case(Ending::Crash; "when the server crashes")]
#[test_case(Ending::Leave; "when the server ends and its children hold the pipes")]
#[tokio::test]
async fn no_descendant_outlives_its_connection(ending: Ending) {
    let mut connection = connect(&kept(), &reference(&[])).await;
    let mut pids = result(&mut connection, "family", json!({})).await;
    match ending {
        Ending::Close => connection.sink.close().await,
        Ending::Drop => drop(connection),
        Ending::Crash => {
            call(&mut connection, 2, "crash", json!({})).await;
            assert_eq!(end(&mut connection).await.code(), "MCP_CLOSED");
        }
        Ending::Leave => {
            all_gone_after_leaving(&mut connection, &mut pids).await;
        }
    }
    all_gone(&pids).await;
}

async fn all_gone_after_leaving(connection: &mut greenroom_boundary::mcp::FrameDuplex, pids: &mut Value) {
    call(connection, 2, "leave", json!({})).await;
    let more = answer(connection).await["params"]["data"]["structuredContent"].clone();
    pids["second child"] = more["child"].clone();
    pids["second escaped"] = more["escaped"].clone();
    let McpError::Closed { message, .. } = end(connection).await else { panic!("not closed") };
    assert_eq!(message, "it exited with status 4");
}

#[tokio::test]
async fn a_stubborn_server_is_killed_with_all_that_it_started() {
    let short = Duration::from_millis(20);
    let limits = RealMcpLimits { grace: short, term_grace: short, ..RealMcpLimits::default() };
    let mut connection = connect(&kept().limits(limits), &reference(&["--stubborn"])).await;
    let pids = result(&mut connection, "family", json!({})).await;
    connection.sink.close().await;
    all_gone(&pids).await;
}

#[tokio::test]
async fn the_end_of_the_thread_that_started_a_server_is_not_the_end_of_the_host() {
    let runtime = tokio::runtime::Handle::current();
    let opened = std::thread::spawn(move || runtime.block_on(open(&kept(), &reference(&[]))));
    let mut connection = tokio::task::spawn_blocking(move || opened.join().unwrap()).await.unwrap();
    let pids = result(&mut connection, "family", json!({})).await;
    assert_eq!(result(&mut connection, "echo", json!({"text": "on"})).await, json!({"text": "on"}));
    connection.sink.close().await;
    all_gone(&pids).await;
}

#[test_case("exit 3", "it exited with status 3"; "a status")]
#[test_case("kill -9 $$", "it was ended by signal SIGKILL"; "a signal")]
#[test_case("kill -TERM $$", "it was ended by signal SIGTERM"; "a signal that the keeper handles")]
#[test_case("kill -SEGV $$", "it was ended by signal SIGSEGV"; "a fault")]
#[tokio::test]
async fn the_end_of_a_server_is_told_as_it_was(script: &str, words: &str) {
    let mut connection = open(&kept(), &process("shop", "sh", &["-c", script])).await;
    let McpError::Closed { message, .. } = end(&mut connection).await else { panic!("not closed") };
    assert_eq!(message, words);
}

#[tokio::test]
async fn a_program_that_the_system_refuses_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    std::fs::write(&program, "#!/no/such/interpreter\n").unwrap();
    let path = program.to_str().unwrap();
    let target = process("shop", path, &[]);
    let refused = |error: McpError| match error {
        McpError::Unreachable { message, .. } | McpError::Closed { message, .. } => message,
        other => panic!("{other}"),
    };
    let cancel = CancellationToken::new();
    let forbidden = refused(greenroom_boundary::McpConnector::open(&kept(), &target, &cancel).await.unwrap_err());
    assert!(forbidden.contains("cannot be started: permission denied"), "{forbidden}");
    make_executable(&program);
    let mut connection = open(&kept(), &target).await;
    let unfit = refused(end(&mut connection).await);
    assert!(unfit.contains(path) && unfit.contains("cannot be started"), "{unfit}");
}

fn make_executable(program: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_command_leaves_no_escaped_child() {
    let script = "setsid sleep 86400 & echo $!; exit 0";
    let mut stream = runner().run(command(&["sh", "-c", script]), &CancellationToken::new()).await.unwrap();
    let Some(Ok(CliEvent::Stdout(line))) = stream.next().await else { panic!("no process id") };
    let pid = String::from_utf8_lossy(&line).trim().parse().unwrap();
    assert_eq!(collect(stream).await.end, Ok(CliExit::Code(0)));
    assert!(gone(pid).await);
}

/// A process that is asked to be a keeper by somebody else than its parent starts nothing.
#[test]
fn a_keeper_without_its_host_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let sign = folder.path().join("started");
    let args = ["_exec", "1", "touch", sign.to_str().unwrap()];
    assert_cmd::Command::new(env!("CARGO_BIN_EXE_greenroom")).args(args).assert().code(126);
    assert!(!sign.exists());
}
