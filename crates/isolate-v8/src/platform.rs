//! One-time start of V8 for the process: flags, ICU data, platform.
//!
//! Invariant: flags are set once, before V8 starts, and a flag that this V8 does not know stops the process at once.
//! Deliberately no shutdown: V8 cannot be started twice in one process.

use std::sync::OnceLock;

/// Proof that V8 has been started; only [`initialise_v8`] gives it.
#[derive(Clone, Copy, Debug)]
pub struct V8Initialised(());

/// Worker threads of V8's own platform (garbage collection, background compilation).
const PLATFORM_THREADS: u32 = 1;

/// See the notes of each: frequent full collections would drop bytecode that the next call needs; small young
/// generation bounds memory; what a dropped isolate held goes back to the system and not into a pool that only grows; unrolling takes the
/// look for a kill out of a loop without end that is around a `fill` of a new array, so nothing could stop it; the rest closes doors
/// that scripts do not need.
const FLAGS: [&str; 7] = [
    "--no-flush-bytecode",
    "--max-semi-space-size=4",
    "--stack-trace-limit=10",
    "--no-turboshaft-loop-unrolling",
    "--disallow-code-generation-from-strings",
    "--enable-sharedarraybuffer-per-context",
    "--no-memory-pool-share-memory-on-teardown",
];

static STARTED: OnceLock<V8Initialised> = OnceLock::new();

/// Starts V8, once per process; later calls only return the token.
///
/// Call it at the beginning of `main`, before the async runtime or any other thread is made: on processors with memory
/// protection keys only threads created after V8's start may enter an isolate, others crash. The engine's own threads are made
/// after it by construction, since [`crate::V8Engine::start`] asks for the token; a thread that exists before and never enters an isolate does no harm.
///
/// Scripts see the locale `en-US` and the time zone `UTC` wherever the host runs, so that their output does not depend on the machine.
///
/// # Panics
///
/// When the linked V8 does not know a flag, or refuses the ICU data: both are errors of the build, not of its use.
pub fn initialise_v8() -> V8Initialised {
    *STARTED.get_or_init(|| {
        let mut arguments = vec!["greenroom".to_owned()];
        arguments.extend(FLAGS.iter().map(|flag| (*flag).to_owned()));
        let unknown = v8::V8::set_flags_from_command_line(arguments);
        assert!(unknown.len() <= 1, "this V8 does not know the flags {:?}", &unknown[1..]);
        let icu = v8::icu::set_common_data_78(deno_core_icudata::ICU_DATA);
        assert!(icu.is_ok(), "V8 refused the ICU data: {icu:?}");
        v8::icu::set_default_locale("en-US");
        let _ = v8::icu::set_default_time_zone("UTC");
        v8::V8::initialize_platform(v8::new_default_platform(PLATFORM_THREADS, false).make_shared());
        v8::V8::initialize();
        V8Initialised(())
    })
}
