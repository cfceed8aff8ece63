// The scheduling priority of a thread.
#pragma once

namespace hangar::io {

// From here on the calling thread yields the processor to threads of normal priority.
void give_way();

}  // namespace hangar::io
