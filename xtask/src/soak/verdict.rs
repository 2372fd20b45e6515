//! Whether the samples show a leak.
//!
//! Invariant: the rule below is all that decides. The first quarter is warm-up: pools, caches and engines fill.

use super::sample::Sample;

/// The rule in words, for whoever reads the report.
pub(crate) const RULE: &str = "median RSS of the last quarter of the sessions ≤ 1.1 × the median of the second quarter + 8 MiB; \
    the same for descriptors and threads (+ 16), processes, connections, instances and sessions (+ 8); afterwards no process, connection, \
    instance, session or script handle is left, and descriptors and threads are back at the idle level (+ 8)";

const SLACK_RSS_KIB: usize = 8 * 1024;
const SLACK_FDS: usize = 16;
const SLACK_SMALL: usize = 8;

/// A kind of number in a sample.
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) of: fn(&Sample) -> usize,
    slack: usize,
    /// Whether the end is compared with the idle level (else with nothing at all); memory is neither.
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Any,
    Idle,
    Zero,
}

/// Every metric that is judged and drawn.
pub(crate) const METRICS: [Metric; 8] = [
    Metric { name: "RSS KiB", of: |s| s.rss_kib, slack: SLACK_RSS_KIB, end: End::Any },
    Metric { name: "descriptors", of: |s| s.fds, slack: SLACK_FDS, end: End::Idle },
    Metric { name: "threads", of: |s| s.threads, slack: SLACK_FDS, end: End::Idle },
    Metric { name: "processes", of: |s| s.children, slack: SLACK_SMALL, end: End::Zero },
    Metric { name: "connections", of: |s| s.connections, slack: SLACK_SMALL, end: End::Zero },
    Metric { name: "instances", of: |s| s.instances, slack: SLACK_SMALL, end: End::Zero },
    Metric { name: "sessions", of: |s| s.roots, slack: SLACK_SMALL, end: End::Zero },
    Metric { name: "script handles", of: |s| s.script_handles, slack: SLACK_SMALL, end: End::Zero },
];

/// One metric over the run.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) idle: usize,
    /// Medians of the quarters of the sessions.
    pub(crate) quarters: [usize; 4],
    pub(crate) end: usize,
    /// What is wrong with it.
    pub(crate) faults: Vec<String>,
}

/// Judges a run: `idle` before it, `samples` during it, `end` after it.
pub(crate) fn judge(idle: &Sample, samples: &[Sample], end: &Sample) -> Vec<Row> {
    METRICS.iter().map(|metric| row(metric, idle, samples, end)).collect()
}

fn row(metric: &Metric, idle: &Sample, samples: &[Sample], end: &Sample) -> Row {
    let total = samples.last().map_or(0, |last| last.sessions);
    let quarters = [0, 1, 2, 3].map(|quarter| {
        let within = |s: &&Sample| s.sessions * 4 > total * quarter && s.sessions * 4 <= total * (quarter + 1);
        median(samples.iter().filter(within).map(metric.of).collect())
    });
    let (idle, end) = ((metric.of)(idle), (metric.of)(end));
    let most = quarters[1] + quarters[1] / 10 + metric.slack;
    let mut faults = Vec::new();
    if quarters[3] > most {
        faults.push(format!(
            "{} grew: {} in the second quarter, {} in the last, at most {most} is flat",
            metric.name, quarters[1], quarters[3]
        ));
    }
    let allowed = match metric.end {
        End::Any => usize::MAX,
        End::Idle => idle + SLACK_SMALL,
        End::Zero => 0,
    };
    if end > allowed {
        faults.push(format!("{} left at the end: {end}, idle was {idle}", metric.name));
    }
    Row { name: metric.name, idle, quarters, end, faults }
}

fn median(mut values: Vec<usize>) -> usize {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    fn run(rss_kib: fn(usize) -> usize, end: Sample) -> Vec<String> {
        let samples: Vec<Sample> =
            (1..=100).map(|sessions| Sample { sessions, rss_kib: rss_kib(sessions), ..Sample::default() }).collect();
        judge(&Sample::default(), &samples, &end).into_iter().flat_map(|row| row.faults).collect()
    }

    #[test_case(|_| 100_000, 0 ; "flat")]
    #[test_case(|n| if n < 25 { n * 4000 } else { 100_000 }, 0 ; "warm-up")]
    #[test_case(|n| 100_000 + n * 500, 1 ; "growing")]
    fn memory(rss_kib: fn(usize) -> usize, faults: usize) {
        assert_eq!(run(rss_kib, Sample::default()).len(), faults);
    }

    #[test_case(Sample { children: 1, ..Sample::default() }, "processes left at the end: 1, idle was 0" ; "a process")]
    #[test_case(Sample { fds: 9, ..Sample::default() }, "descriptors left at the end: 9, idle was 0" ; "descriptors")]
    #[test_case(Sample { instances: 1, ..Sample::default() }, "instances left at the end: 1, idle was 0" ; "an instance")]
    fn leftovers(end: Sample, fault: &str) {
        assert_eq!(run(|_| 1, end), [fault]);
    }
}
