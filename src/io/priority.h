// How urgent a thread's work is to the kernel.
#pragma once

namespace hangar::io {

// The calling thread runs when others leave it time, from here on.
void give_way();

}  // namespace hangar::io
