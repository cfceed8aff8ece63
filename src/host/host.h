// The whole process: every part, built in the order of the members, ended in reverse.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

#include <memory>

namespace hangar::host {

class Host {
 public:
  // Does no I/O. `log_sink` outlives the host.
  Host(Config config, LogSink& log_sink);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  // Runs until SIGTERM or SIGINT, then ends what runs within limits::kShutdownMax. Returns an error
  // for what stops it from starting (configuration, credentials, directories). When its Lease is
  // lost the process ends (host/supervisor.h). The calling thread becomes the main loop's.
  [[nodiscard]] Result<> run();

 private:
  struct Parts;
  Config config_;
  Log log_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hangar::host
