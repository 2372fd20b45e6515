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

/// A slot that reaches this is retired.
const LAST_GENERATION: i32 = (1 << 30) - 1;
/// Bits of a packed handle: space and index, above the lowest, which stays 0.
const SPACE_BITS: u32 = 11;
const INDEX_BITS: u32 = 20;

impl Handle {
    /// One even number for a `ctx` object of this space: what V8 takes for an aligned pointer and never follows.
    pub(crate) fn pack(self, space: usize) -> usize {
        let low = (self.index as usize) << SPACE_BITS | (space & ((1 << SPACE_BITS) - 1));
        (self.generation as usize) << (SPACE_BITS + INDEX_BITS + 1) | low << 1
    }

    /// The handle and the space of a packed number.
    pub(crate) fn unpack(packed: usize) -> (Self, usize) {
        let low = packed >> 1;
        let index = (low >> SPACE_BITS & ((1 << INDEX_BITS) - 1)) as i32;
        let generation = (packed >> (SPACE_BITS + INDEX_BITS + 1)) as i32;
        (Self { index, generation }, low & ((1 << SPACE_BITS) - 1))
    }
}

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
    fn packing_keeps_everything_and_is_even() {
        for (index, generation, space) in [(0, 1, 0), (7, 12, 9), ((1 << 20) - 1, LAST_GENERATION, (1 << 11) - 1)] {
            let handle = Handle { index, generation };
            let packed = handle.pack(space);
            assert_eq!((packed % 2, Handle::unpack(packed)), (0, (handle, space)));
        }
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
