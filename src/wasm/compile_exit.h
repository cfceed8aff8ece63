// How hangar-compile ends, for the program itself and for the host that started it.
#pragma once

#include <string_view>

namespace hangar::wasm {

inline constexpr int kExitOk = 0;
inline constexpr int kExitInvalidModule = 2;  // The message on stderr is for the module's author.
inline constexpr int kExitLimit = 3;          // Compiling it takes more than is allowed.
inline constexpr int kExitInternal = 4;       // Not the module's fault.

// What it says of itself, with kExitLimit.
inline constexpr std::string_view kOutOfMemory = "compiling takes more memory than is allowed";

// Behind the bytes of memory: that it is to verify the signature of the module and to compile
// nothing. Keys follow, each a SubjectPublicKeyInfo in base64.
inline constexpr std::string_view kVerifyArgument = "verify";

}  // namespace hangar::wasm
