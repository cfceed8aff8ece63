// Whether this build can be limited at all.
#pragma once

namespace hangar::sandbox {

// The sanitizers' runtimes reserve terabytes and read /proc: they and a sandbox exclude each other.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kIsSandboxed = false;
#else
inline constexpr bool kIsSandboxed = true;
#endif

}  // namespace hangar::sandbox
