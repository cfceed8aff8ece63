//! wasmtime's C API, with a heap of its own (docs/adr/0018), and with a limiter that asks.
//!
//! What wasmtime knows of a module while its code is loaded is hundreds of kilobytes in small
//! pieces. In the program's heap they would lie between what the program keeps, and leave their
//! pages behind as holes when they go.

// Re-exported so that the C API's symbols end up in the static library.
pub use wasmtime_c_api::*;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr;
use tikv_jemallocator::Jemalloc;
use wasmtime_c_api::wasmtime::{self, ResourceLimiter};

unsafe extern "C" {
    /// The program's to define. False: its own heap is used, so that a sanitizer sees everything.
    safe static hangar_wasmtime_has_own_heap: bool;
}

/// What jemalloc reads when it starts: few threads need it for a moment each, and what is free
/// goes back when `hangar_wasmtime_trim_heap` says so.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static CONFIGURATION: Option<&'static std::ffi::c_char> = Some(unsafe {
    &*c"narenas:1,tcache:false,dirty_decay_ms:500,muzzy_decay_ms:0".as_ptr()
});

struct Heap;

// SAFETY: both heaps keep the contract, and each piece goes back to the one that it is from: the
// program's choice is a constant.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if hangar_wasmtime_has_own_heap {
            unsafe { Jemalloc.alloc(layout) }
        } else {
            unsafe { System.alloc(layout) }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if hangar_wasmtime_has_own_heap {
            unsafe { Jemalloc.alloc_zeroed(layout) }
        } else {
            unsafe { System.alloc_zeroed(layout) }
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if hangar_wasmtime_has_own_heap {
            unsafe { Jemalloc.dealloc(at, layout) }
        } else {
            unsafe { System.dealloc(at, layout) }
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if hangar_wasmtime_has_own_heap {
            unsafe { Jemalloc.realloc(at, layout, size) }
        } else {
            unsafe { System.realloc(at, layout, size) }
        }
    }
}

#[global_allocator]
static HEAP: Heap = Heap;

/// Gives what is free back to the system. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn hangar_wasmtime_trim_heap() {
    if hangar_wasmtime_has_own_heap {
        // SAFETY: a control without arguments. It cannot fail: there is an arena 0 from the start.
        unsafe {
            tikv_jemalloc_sys::mallctl(
                c"arena.0.purge".as_ptr(),
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
                0,
            );
        }
    }
}

/// Asks the program whether an instance may have more: of `kind`, `desired` in place of `current`.
type MayGrow = extern "C" fn(account: *mut c_void, kind: u32, current: usize, desired: usize) -> bool;
const KIND_MEMORY: u32 = 0; // Bytes of its linear memory.
const KIND_TABLE: u32 = 1; // Elements of one of its tables.

/// The C API's own limiter bounds each memory and each table for itself; this one asks for each
/// growth, so that the program can count them together.
struct Limiter {
    account: *mut c_void,
    may_grow: MayGrow,
}

// SAFETY: a store is one thread's at a time, and so is what it was given.
unsafe impl Send for Limiter {}
unsafe impl Sync for Limiter {}

impl Limiter {
    fn ask(&self, kind: u32, current: usize, desired: usize, maximum: Option<usize>) -> bool {
        // What its type forbids would fail later, and must not be counted.
        maximum.is_none_or(|maximum| desired <= maximum)
            && (self.may_grow)(self.account, kind, current, desired)
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.ask(KIND_MEMORY, current, desired, maximum))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.ask(KIND_TABLE, current, desired, maximum))
    }

    // A store is made for one instance of one module with at most one memory. Tables count by size.
    fn instances(&self) -> usize {
        1
    }
    fn memories(&self) -> usize {
        1
    }
}

struct LimiterOwner(*mut Limiter);

// SAFETY: as of what it owns.
unsafe impl Send for LimiterOwner {}
unsafe impl Sync for LimiterOwner {}

impl Drop for LimiterOwner {
    fn drop(&mut self) {
        // SAFETY: it is from Box::into_raw, and freed only here.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// In place of `wasmtime_store_limiter`. `account` outlives the store.
///
/// # Safety
/// `store` is valid and nobody else uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hangar_wasmtime_limit_store(
    store: *mut wasmtime_store_t,
    account: *mut c_void,
    may_grow: MayGrow,
) {
    // SAFETY: `wasmtime_store_t` is `repr(C)` with this one field.
    let store = unsafe { &mut *store.cast::<WasmtimeStore>() };
    let owner = LimiterOwner(Box::into_raw(Box::new(Limiter { account, may_grow })));
    store.limiter(move |_| {
        let owner = &owner;
        // SAFETY: the store has one limiter, and asks it one thing at a time.
        unsafe { &mut *owner.0 }
    });
}
