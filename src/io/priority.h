// The scheduling priority of a thread.
#pragma once

namespace hangar::io {

// From here on the calling thread yields the processor to threads of normal priority. For work that
// nobody waits for, and for work that takes long in any case.
void give_way();
// The same, but the thread keeps a third of the processor time of a normal one. For work of one
// tenant, which runs beside a loop that serves all tenants.
void give_some_way();

}  // namespace hangar::io
