#include "guest/guest_process.h"

#include "abi/flight/evaluation.h"
#include "abi/kube_runtime/local_guest.h"
#include "abi/statemachine/program.h"
#include "base/result.h"
#include "guest/prepared.h"
#include "guest/server.h"
#include "guest/walls.h"
#include "guest_protocol/zygote_messages.h"
#include "io/loop.h"
#include "io/priority.h"
#include "io/workers.h"
#include "sandbox/system_calls.h"
#include "wasm/engine.h"

#include <sys/types.h>
#include <unistd.h>

namespace hangar::guest {

int run_guest_process(const Prepared& prepared, const guest_protocol::ForkProcess& order,
                      int socket, pid_t zygote) {
  if (!prepared.last_wall) return guest_protocol::kExitWithoutWalls;
  io::give_some_way();  // Yields the processor to the host.
  const Result<wasm::OwnProcFiles> files = put_up_first_walls(zygote);
  if (!files) return guest_protocol::kExitWithoutWalls;
  io::Loop loop;
  io::Workers workers(loop, order.thread_count);
  wasm::Engine engine(loop, workers, {.proc_files = *files, .parts = &prepared.engine_parts});
  const abi::flight::Runtime runtime(engine, nullptr, prepared.of_flights);
  const abi::kube_runtime::Runtime guests_runtime(engine, prepared.of_operators);
  abi::statemachine::Programs programs(engine, prepared.of_machines);
  if (!prepared.last_wall->apply(sandbox::Threads::All)) return guest_protocol::kExitWithoutWalls;
  // Exits at once: guests may be running, and the process has nothing to keep.
  const Server server(runtime, guests_runtime, programs, socket, [](Server::End end) {
    ::_exit(end == Server::End::HostIsGone ? 0 : guest_protocol::kExitOtherProtocol);
  });
  loop.run();
  return 0;
}

}  // namespace hangar::guest
