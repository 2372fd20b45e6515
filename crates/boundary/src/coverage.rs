//! Which code of scripts ran, as an engine counted it.
//!
//! Invariant: sums do not depend on the order in which runs are added. Offsets are UTF-16 units into the code that the engine was given,
//! which has the positions of its source. Deliberately no lines: a reader of sources makes them.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A stretch of code of a function that ran equally often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountedRange {
    /// Where it begins.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
    /// How often it ran.
    pub count: u64,
}

/// One function, over all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCoverage {
    /// How often it was called.
    pub calls: u64,
    /// Where blocks were seen within it.
    pub blocks: BTreeSet<(u32, u32)>,
    /// Changes of the count along the code.
    changes: BTreeMap<u32, i64>,
}

impl FunctionCoverage {
    /// Adds what one run counted: the function's own range first, then blocks in it, the outer before the inner.
    pub fn add(&mut self, ranges: &[CountedRange]) {
        let Some((whole, blocks)) = ranges.split_first() else { return };
        self.calls += whole.count;
        self.blocks.extend(blocks.iter().map(|block| (block.start, block.end)));
        for range in flat(ranges) {
            let count = i64::try_from(range.count).unwrap_or(i64::MAX);
            *self.changes.entry(range.start).or_default() += count;
            *self.changes.entry(range.end).or_default() -= count;
        }
    }

    /// Adds another one.
    pub fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.blocks.extend(&other.blocks);
        for (at, change) in &other.changes {
            *self.changes.entry(*at).or_default() += change;
        }
    }

    /// The stretches that ran equally often, in order, gaps left out.
    pub fn stretches(&self) -> Vec<CountedRange> {
        let mut found = Vec::new();
        let mut count = 0;
        let ends = self.changes.keys().skip(1);
        for ((start, change), end) in self.changes.iter().zip(ends) {
            count += change;
            found.push(CountedRange { start: *start, end: *end, count: u64::try_from(count).unwrap_or(0) });
        }
        found
    }

    /// How often the code at this place ran.
    pub fn count_at(&self, place: u32) -> u64 {
        u64::try_from(self.changes.range(..=place).map(|(_, change)| change).sum::<i64>()).unwrap_or(0)
    }
}

/// Nested ranges as stretches side by side: the innermost counts.
fn flat(ranges: &[CountedRange]) -> Vec<CountedRange> {
    let mut found = Vec::new();
    let mut open: Vec<CountedRange> = Vec::new();
    let mut place = 0;
    let mut until = |place: &mut u32, end: u32, count: u64| {
        if end > *place {
            found.push(CountedRange { start: *place, end, count });
            *place = end;
        }
    };
    for range in ranges {
        while let Some(outer) = open.pop_if(|outer| outer.end <= range.start) {
            until(&mut place, outer.end, outer.count);
        }
        match open.last() {
            Some(outer) => until(&mut place, range.start, outer.count),
            None => place = range.start,
        }
        open.push(*range);
    }
    while let Some(outer) = open.pop() {
        until(&mut place, outer.end, outer.count);
    }
    found
}

/// Where a function lies, and its name. In order, an outer function comes before those within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionPlace {
    /// Where it begins.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
    /// Its name; empty for the top level and for functions without one.
    pub name: String,
}

impl FunctionPlace {
    fn order(&self) -> (u32, Reverse<u32>, &str) {
        (self.start, Reverse(self.end), &self.name)
    }
}

impl Ord for FunctionPlace {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for FunctionPlace {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What ran of one file of code: its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCoverage {
    /// Every function that the engine knows of, those that were never called included.
    pub functions: BTreeMap<FunctionPlace, FunctionCoverage>,
}

/// A file of code: as the user knows it, and its text.
pub type FileKey = (String, Arc<str>);

/// What ran of scripts. Two texts under one name are two files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptCoverage {
    /// By file.
    pub files: BTreeMap<FileKey, FileCoverage>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u32, end: u32, count: u64) -> CountedRange {
        CountedRange { start, end, count }
    }

    #[test]
    fn nested_ranges_lie_side_by_side() {
        let nested = [range(10, 90, 3), range(20, 60, 1), range(30, 40, 0), range(60, 70, 2)];
        let wanted =
            [range(10, 20, 3), range(20, 30, 1), range(30, 40, 0), range(40, 60, 1), range(60, 70, 2), range(70, 90, 3)];
        assert_eq!(flat(&nested), wanted);
    }

    #[test]
    fn runs_add_up_in_any_order() {
        let runs = [vec![range(0, 50, 2), range(10, 20, 0)], vec![range(0, 50, 1), range(5, 20, 0)], vec![range(0, 50, 0)]];
        let sum = |order: &[usize]| {
            let mut sum = FunctionCoverage::default();
            for run in order {
                sum.add(&runs[*run]);
            }
            sum
        };
        let all = sum(&[0, 1, 2]);
        assert_eq!(all, sum(&[2, 0, 1]));
        assert_eq!((all.calls, all.count_at(7), all.count_at(15), all.count_at(30)), (3, 2, 0, 3));
        let mut merged = sum(&[1]);
        merged.merge(&sum(&[0, 2]));
        assert_eq!(merged, all);
        assert_eq!(all.stretches(), [range(0, 5, 3), range(5, 10, 2), range(10, 20, 0), range(20, 50, 3)]);
    }
}
