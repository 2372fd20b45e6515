//! Whole scenarios: how many run in a second, read, run and judged, on one thread.
//!
//! Invariant: the shipped files, unchanged. Deliberately without V8, which the bridge's bench measures.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use greenroom::context::TABLE;
use greenroom::rehearsal::InProcess;
use greenroom_harness::host::HostFactory;
use greenroom_harness::load::{LoadOptions, load_suite};
use greenroom_harness::run::{RunOptions, run_case};
use greenroom_mocks::isolate::MockIsolate;

fn replay(criterion: &mut Criterion) {
    let factory: Arc<dyn HostFactory> = Arc::new(InProcess::default());
    let options = RunOptions::new(Arc::new(MockIsolate::new(&TABLE)));
    let mut group = criterion.benchmark_group("replay");
    group.throughput(Throughput::Elements(1));
    for (name, path) in [("scripted_scenario", "scenarios/cli/bash.yaml"), ("cassette_scenario", "scenarios/real/servers.yaml")]
    {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let cases = load_suite(&[path], LoadOptions::default()).expect("the shipped scenario loads");
                for case in cases {
                    let result = run_case(&Arc::new(case), &factory, &options);
                    assert!(result.verdict.is_ok(), "{}: {:?}", result.id, result.failures);
                    black_box(result);
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
