// What ThreadSanitizer has to be told about guests.
//
// A guest's stack and memory go from one guest to the next, on another worker, under locks of
// wasmtime's own: those are Rust, which it does not see. Our frames on such a stack, and our writes
// to such a memory, happen in host functions and in the epoch callback only. So each of these is
// declared to come after all of them that have returned.
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
