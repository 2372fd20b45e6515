//! The table of live `ctx` handles of one isolate thread.
//!
//! Invariant: a handle is (index, generation); it is live only while the slot has that generation, and a generation is never
//! used twice. Plain numbers: no V8 here, nothing to forge a pointer from.

/// What a `ctx` object carries in its internal fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) index: i32,
    pub(crate) generation: i32,
}

/// Small integers of V8 have at least 31 bits; a slot that reaches this is retired.
const LAST_GENERATION: i32 = (1 << 30) - 1;

#[derive(Debug)]
struct Slot {
    generation: i32,
    live: bool,
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    slots: Vec<Slot>,
}

impl Handles {
    /// Makes a live handle.
    pub(crate) fn acquire(&mut self) -> Handle {
        let free = self.slots.iter().position(|slot| !slot.live && slot.generation < LAST_GENERATION);
        let index = free.unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, live: false });
            self.slots.len() - 1
        });
        let slot = &mut self.slots[index];
        slot.live = true;
        slot.generation += 1;
        Handle { index: index as i32, generation: slot.generation }
    }

    /// Kills a handle; doing so again changes nothing.
    pub(crate) fn release(&mut self, handle: Handle) {
        if let Some(slot) = self.slot_mut(handle) {
            slot.live = false;
        }
    }

    /// Whether the handle is live.
    pub(crate) fn is_live(&self, handle: Handle) -> bool {
        let slot = usize::try_from(handle.index).ok().and_then(|index| self.slots.get(index));
        slot.is_some_and(|slot| slot.live && slot.generation == handle.generation)
    }

    fn slot_mut(&mut self, handle: Handle) -> Option<&mut Slot> {
        let slot = usize::try_from(handle.index).ok().and_then(|index| self.slots.get_mut(index))?;
        (slot.generation == handle.generation).then_some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_handle_is_dead_even_when_its_slot_is_used_again() {
        let mut handles = Handles::default();
        let first = handles.acquire();
        handles.release(first);
        handles.release(first);
        let second = handles.acquire();
        assert_eq!(first.index, second.index);
        assert!(!handles.is_live(first));
        handles.release(first);
        assert!(handles.is_live(second));
    }

    #[test]
    fn invented_handles_are_dead() {
        let mut handles = Handles::default();
        let real = handles.acquire();
        for (index, generation) in [(-1, 1), (7, 1), (real.index, real.generation + 1), (i32::MAX, i32::MAX)] {
            assert!(!handles.is_live(Handle { index, generation }));
        }
    }

    #[test]
    fn a_worn_out_slot_is_retired() {
        let mut handles = Handles { slots: vec![Slot { generation: LAST_GENERATION, live: false }] };
        assert_eq!(handles.acquire(), Handle { index: 1, generation: 1 });
    }
}
