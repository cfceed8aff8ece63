//! The interface to the host: two calls to it, two from it.

#[cfg(target_family = "wasm")]
pub(crate) use wasm::{delay, request};

#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::testing::{delay, request};

#[cfg(target_family = "wasm")]
mod wasm {
    use std::alloc::{Layout, alloc, handle_alloc_error};
    use std::ptr::NonNull;

    use crate::{call, executor};

    mod import {
        #[link(wasm_import_module = "http-proxy-abi")]
        unsafe extern "C" {
            pub(super) fn request(address: *const u8, length: usize, is_stream: u32) -> u64;
        }

        #[link(wasm_import_module = "delay-abi")]
        unsafe extern "C" {
            pub(super) safe fn delay(milliseconds: u64) -> u64;
        }
    }

    /// Starts an HTTP request; its answers arrive under the returned identifier.
    pub(crate) fn request(message: &[u8], is_stream: bool) -> u64 {
        // SAFETY: the host reads the message during the call only.
        unsafe { import::request(message.as_ptr(), message.len(), u32::from(is_stream)) }
    }

    /// Starts a delay; its end arrives under the returned identifier.
    pub(crate) fn delay(milliseconds: u64) -> u64 {
        import::delay(milliseconds)
    }

    /// Memory for one answer. The guest owns it again once `wakeup` passes it back.
    #[unsafe(no_mangle)]
    extern "C" fn allocate(size_bytes: usize) -> *mut u8 {
        let Ok(layout) = Layout::array::<u8>(size_bytes) else {
            panic!("asked for {size_bytes} bytes");
        };
        if size_bytes == 0 {
            return NonNull::dangling().as_ptr();
        }
        // SAFETY: the layout's size is not zero.
        let memory = unsafe { alloc(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        memory
    }

    /// One answer; a null address is an answer without bytes.
    ///
    /// # Safety
    /// `address` is null, or `allocate(length)` returned it and it was not given back yet.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn wakeup(id: u64, is_finished: u32, address: *mut u8, length: usize) {
        let bytes = NonNull::new(address)
            // SAFETY: allocate makes exactly the allocation of a vector of this length
            // and capacity.
            .map(|address| unsafe { Vec::from_raw_parts(address.as_ptr(), length, length) });
        call::answered(id, bytes, is_finished != 0);
        executor::run_until_stalled();
    }
}
