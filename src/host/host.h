// The whole process. The parts are built in the order of the members and destroyed in reverse.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"
#include "host/succession.h"

#include <memory>
#include <optional>
#include <utility>

namespace hangar::host {

class Host {
 public:
  // Does no I/O. `log_sink` must outlive the host.
  Host(Config config, LogSink& log_sink);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  // Runs until SIGTERM or SIGINT, then stops all work within limits::kShutdownMax. Returns an error
  // if it cannot start (configuration, credentials, directories). If its Lease is lost, the process
  // exits (host/supervisor.h). The calling thread becomes the thread of the main loop.
  //
  // After SIGUSR2 it stops in the same way, but keeps its Lease and what its sleeping operators
  // need: the caller destroys this and executes the program again.
  [[nodiscard]] Result<> run();
  // After run(): nothing if the process is to end.
  [[nodiscard]] std::optional<Successor> take_successor() {
    return std::exchange(successor_, std::nullopt);
  }

 private:
  struct Parts;
  Config config_;
  Log log_;
  std::unique_ptr<Parts> parts_;
  std::optional<Successor> successor_;
};

// Runs a host to its end. Where it is to be replaced in place, that is the end of this program, and
// the call returns only if that fails.
[[nodiscard]] Result<> run_host(const Config& config, LogSink& log_sink);

}  // namespace hangar::host
