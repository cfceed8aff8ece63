// Whether this build can be sandboxed at all.
#pragma once

namespace hangar::sandbox {

// The runtimes of the sanitizers reserve terabytes and read /proc, which no sandbox allows.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kIsSandboxed = false;
#else
inline constexpr bool kIsSandboxed = true;
#endif

}  // namespace hangar::sandbox
