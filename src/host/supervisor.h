// What goes on whatever the main loop does: the Lease, the health endpoints, and the watch over the
// main loop.
//
// All of it has a thread of its own, with its own loop, connections to the API server and
// credentials. Work for tenants is on the main loop and on workers, so none of it can take the time
// or the connection that a renewal needs. Between the two threads only values travel: functions by
// Loop::post, and the Fence, which the main loop's requests ask before they write.
//
// Because the Lease is renewed while the main loop is held up, a main loop that never comes back
// would be leader for ever. So there is a bound: beyond `dead_after` in one turn the fence is shut,
// the Lease is given away, and the process ends. Whatever may still have run ends with it.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "host/loop_watch.h"
#include "http/client.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/auth/credentials.h"
#include "kube/auth/kubeconfig.h"
#include "kube/client.h"
#include "kube/fence.h"
#include "ops/endpoints.h"
#include "reconcile/leader_elector.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace hangar::host {

class Supervisor {
 public:
  struct Parts {
    io::Loop& main;
    kube::Login login;
    Metrics& metrics;  // The process's.
    Log log;
    // None: this process leads without a Lease.
    std::optional<reconcile::LeaderElector::Options> lease = {};
    // Open while this process leads; with a Lease.
    std::shared_ptr<kube::Fence> fence = {};
    Duration dead_after{};
  };

  // Does no I/O.
  explicit Supervisor(Parts parts);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  // Stop it before. Waits for its thread.
  ~Supervisor();

  // For /readyz; called on the main loop. Before listen().
  void add_check(std::string name, std::function<Result<>()> check);
  // As ops::Endpoints::listen. Before start().
  [[nodiscard]] Result<> listen(std::string_view address);

  // `on_leading` is called on the main loop, once. When the Lease is lost after that, the process
  // ends at once with exit code 1: a leader that begins anew knows nothing that is out of date.
  void start(std::function<void()> on_leading);
  // For the main loop: gives the Lease away, then answers nobody any more. What acts only as leader
  // has ended before.
  [[nodiscard]] io::Task<void> stop();

 private:
  void on_stopped();
  void on_dead(const std::string& why);
  [[nodiscard]] io::Task<void> give_up();
  [[nodiscard]] io::Task<void> end(io::OneShot<bool> ended);
  [[noreturn]] void end_process(std::string_view why);

  const Parts parts_;
  const Log log_;
  std::function<void()> on_leading_;

  io::Loop loop_;
  // Not the process's: the renewal must not wait for a scrape that has them locked.
  Metrics metrics_;
  http::Client http_;
  std::shared_ptr<kube::Credentials> credentials_;
  kube::Client client_;
  std::unique_ptr<reconcile::LeaderElector> elector_;  // Null without a Lease.
  ops::Endpoints endpoints_;
  LoopWatch watch_;
  bool is_ending_ = false;
  std::jthread thread_;
};

}  // namespace hangar::host
