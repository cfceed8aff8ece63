// The pages of the program and its libraries.
#pragma once

namespace hangar::guest {

// Unmaps all pages of the program and its libraries that are only read. The kernel has them in its
// cache, and maps those again that are used. Starting uses most of them once, and waiting few.
void unmap_program();

}  // namespace hangar::guest
