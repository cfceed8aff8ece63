//! wasmtime's C API, with a heap of its own (docs/adr/0018).
//!
//! What wasmtime knows of a module while its code is loaded is hundreds of kilobytes in small
//! pieces. In the program's heap they would lie between what the program keeps, and leave their
//! pages behind as holes when they go.

// Re-exported so that the C API's symbols end up in the static library.
pub use wasmtime_c_api::*;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use tikv_jemallocator::Jemalloc;

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
