// The whole process. The parts are built in the order of the members and destroyed in reverse.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

#include <memory>

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
  [[nodiscard]] Result<> run();

 private:
  struct Parts;
  Config config_;
  Log log_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hangar::host
