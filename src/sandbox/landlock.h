// A second wall, the kernel's Landlock: no access to files, ports and other processes, even if the
// process gets around its system call filter.
#pragma once

#include "base/result.h"

namespace hangar::sandbox {

// The version of the kernel's interface; zero where it has no Landlock, and in a sanitized build.
[[nodiscard]] int landlock_version();

// From here on the calling thread, and threads that it starts later, cannot open a file by name.
// From version 4 of the kernel's interface on they cannot reach a TCP port either; from version 6
// on they cannot signal another process or connect to its abstract sockets. Open descriptors keep
// working. Returns the version, or zero where the kernel has no Landlock, which is not an error
// because a sandbox has other walls. Call it after give_up_privileges(). Does nothing in a
// sanitized build.
[[nodiscard]] Result<int> deny_files_and_others();

}  // namespace hangar::sandbox
