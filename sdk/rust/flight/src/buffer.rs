//! Memory that a flight and its host pass to each other.
//!
//! A buffer is passed as one 64-bit number: its address in the upper half, its length in bytes in the
//! lower. For an answer the host calls the exported `malloc` while an import is still running.

// Natively there is no host to talk to; this code is then compiled only for its tests.
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

/// Packs a slice of this module's memory. The empty buffer is always zero.
pub(crate) fn of(bytes: &[u8]) -> u64 {
    pack(bytes.as_ptr() as usize as u32, bytes.len() as u32)
}

fn pack(address: u32, length: u32) -> u64 {
    if length == 0 {
        return 0;
    }
    u64::from(address) << 32 | u64::from(length)
}

fn unpack(buffer: u64) -> (u32, u32) {
    ((buffer >> 32) as u32, buffer as u32)
}

#[cfg(target_family = "wasm")]
pub(crate) use wasm::take;

#[cfg(target_family = "wasm")]
mod wasm {
    use std::cell::RefCell;

    use super::{of, unpack};

    thread_local! {
        /// Blocks that the host has allocated and the flight has not taken. Only memory in this list is
        /// ever turned back into a vector, so a wrong answer of the host is an error and nothing worse.
        static PENDING: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
    }

    /// The exported malloc: memory of exactly this size, kept until [`take`].
    #[unsafe(no_mangle)]
    extern "C" fn hangar_flight_allocate(size_bytes: u32) -> u64 {
        if size_bytes == 0 {
            return 0;
        }
        let memory = vec![0u8; size_bytes as usize].into_boxed_slice();
        let buffer = of(&memory);
        PENDING.with_borrow_mut(|pending| pending.push(memory));
        buffer
    }

    /// Takes ownership of a buffer that an import returned; `None` if malloc did not allocate it.
    pub(crate) fn take(buffer: u64) -> Option<Vec<u8>> {
        let (address, length) = unpack(buffer);
        if length == 0 {
            return Some(Vec::new());
        }
        PENDING.with_borrow_mut(|pending| {
            let index = pending
                .iter()
                .position(|memory| memory.as_ptr() as usize == address as usize)?;
            let mut memory = pending.swap_remove(index).into_vec();
            if length as usize > memory.len() {
                return None;
            }
            memory.truncate(length as usize);
            Some(memory)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_holds_the_address_above_the_length() {
        assert_eq!(pack(0x10, 0x20), 0x0000_0010_0000_0020);
        assert_eq!(pack(0x8000_0000, 1), 0x8000_0000_0000_0001);
        assert_eq!(pack(1, u32::MAX), 0x0000_0001_ffff_ffff);
    }

    #[test]
    fn the_empty_buffer_has_no_address() {
        assert_eq!(pack(0x1234, 0), 0);
        assert_eq!(of(b""), 0);
    }

    #[test]
    fn unpacking_undoes_packing() {
        assert_eq!(unpack(pack(0xffff_fff0, 15)), (0xffff_fff0, 15));
    }
}
