#include "guest/guest_process.h"

#include "abi/flight/evaluation.h"
#include "abi/kube_runtime/local_guest.h"
#include "abi/statemachine/program.h"
#include "base/result.h"
#include "guest/server.h"
#include "guest/walls.h"
#include "guest_protocol/zygote_messages.h"
#include "io/loop.h"
#include "io/priority.h"
#include "io/workers.h"
#include "wasm/engine.h"

#include <sys/types.h>
#include <unistd.h>

namespace hangar::guest {

int run_guest_process(const guest_protocol::ForkProcess& order, int socket, pid_t zygote,
                      const abi::flight::Runtime::AddFunctions& add_functions) {
  io::give_some_way();  // Yields the processor to the host.
  const Result<wasm::OwnProcFiles> files = put_up_first_walls(zygote);
  if (!files) return guest_protocol::kExitWithoutWalls;
  io::Loop loop;
  io::Workers workers(loop, order.thread_count);
  wasm::Engine engine(loop, workers, {.proc_files = *files});
  const abi::flight::Runtime runtime(engine, nullptr, add_functions);
  const abi::kube_runtime::Runtime guests_runtime(engine);
  abi::statemachine::Programs programs(engine);
  if (!put_up_last_wall()) return guest_protocol::kExitWithoutWalls;
  // Exits at once: guests may be running, and the process has nothing to keep.
  const Server server(runtime, guests_runtime, programs, socket, [](Server::End end) {
    ::_exit(end == Server::End::HostIsGone ? 0 : guest_protocol::kExitOtherProtocol);
  });
  loop.run();
  return 0;
}

}  // namespace hangar::guest
