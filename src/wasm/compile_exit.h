// The exit codes of hangar-compile, shared by the program and the host that starts it.
#pragma once

#include <string_view>

namespace hangar::wasm {

inline constexpr int kExitOk = 0;
inline constexpr int kExitInvalidModule = 2;  // The message on stderr is for the module's author.
inline constexpr int kExitLimit = 3;          // Compiling the module exceeds a limit.
inline constexpr int kExitInternal = 4;       // Not the module's fault.

// The message for kExitLimit.
inline constexpr std::string_view kOutOfMemory = "compiling takes more memory than is allowed";

// This argument, after the bytes of memory, means: verify the signature of the module and compile
// nothing. Keys follow, each a SubjectPublicKeyInfo in base64.
inline constexpr std::string_view kVerifyArgument = "verify";

// This argument, after the bytes of memory and of output, means: compile for every processor of
// this architecture (CodeTarget::any_machine()).
inline constexpr std::string_view kAnyProcessorArgument = "any-processor";

}  // namespace hangar::wasm
