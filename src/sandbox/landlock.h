// A second list, of the kernel's own: no file, no port and no other process, whatever system calls
// a process finds a way to make.
#pragma once

#include "base/result.h"

namespace hangar::sandbox {

// Of the kernel's interface; zero where it has no Landlock, and in a sanitized build.
[[nodiscard]] int landlock_version();

// The calling thread, and those that it starts later, can open no file by name any more; from
// version 4 of the kernel's interface on it can reach no TCP port, from 6 on it can signal only its
// own and connect to no abstract socket of others. Descriptors that are open stay as they are.
// Returns the version, zero where the kernel has no Landlock: a sandbox has other walls. After
// give_up_privileges(). Nothing happens in a sanitized build.
[[nodiscard]] Result<int> deny_files_and_others();

}  // namespace hangar::sandbox
