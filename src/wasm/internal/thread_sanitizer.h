// Annotations about guests for ThreadSanitizer.
//
// A guest's stack and memory pass from one guest to the next, on another worker, under locks of
// wasmtime, which is Rust and which ThreadSanitizer does not see. Our frames on such a stack, and
// our writes to such a memory, happen only in host functions and in the epoch callback. So each of
// these is declared to happen after all of them that have returned.
#pragma once

#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#endif

namespace hangar::wasm::internal {

class OnGuestStack {
 public:
#if __has_feature(thread_sanitizer)
  OnGuestStack() { __tsan_acquire(&token); }
  ~OnGuestStack() { __tsan_release(&token); }
#else
  OnGuestStack() {}
  ~OnGuestStack() {}
#endif
  OnGuestStack(const OnGuestStack&) = delete;
  OnGuestStack& operator=(const OnGuestStack&) = delete;

 private:
  inline static char token = 0;
};

}  // namespace hangar::wasm::internal
