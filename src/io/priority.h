// The scheduling priority of a thread.
#pragma once

namespace hangar::io {

// From here on the calling thread yields the processor to threads of normal priority: for work that
// nobody waits for, and for work that takes long in any case.
void give_way();
// The same, but it keeps a third of what such a thread gets: for work of one tenant, which runs
// beside a loop that serves all of them.
void give_some_way();

}  // namespace hangar::io
