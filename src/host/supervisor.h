// Runs the parts that must not depend on the main loop: the Lease, the health endpoints, and the
// watchdog of the main loop.
//
// It has its own thread, loop, connections to the API server and credentials. Work for tenants
// runs on the main loop and on workers, so it cannot take the time or the connection that a renewal
// of the Lease needs. Only values cross between the two threads: functions by Loop::post, and the
// Fence, which the main loop's requests check before they write.
//
// Because the Lease is renewed while the main loop is blocked, a main loop that hangs would stay
// leader for ever. So there is a limit: when one turn takes longer than `dead_after`, the
// supervisor shuts the fence, releases the Lease and exits the process, which stops all work that
// still runs.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/auth/credentials.h"
#include "kube/auth/kubeconfig.h"
#include "kube/client.h"
#include "kube/fence.h"
#include "ops/endpoints.h"
#include "ops/loop_watch.h"
#include "reconcile/leader_elector.h"

#include <cstdint>
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
    Metrics& metrics;  // Metrics of the process.
    Log log;
    // Unset: this process leads without a Lease.
    std::optional<reconcile::LeaderElector::Options> lease = {};
    // Open while this process leads; null without a Lease.
    std::shared_ptr<kube::Fence> fence = {};
    Duration dead_after{};
  };

  // Does no I/O.
  explicit Supervisor(Parts parts);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  // Requires that it is stopped. Waits for its thread.
  ~Supervisor();

  // A check of /readyz; called on the main loop. Add it before listen().
  void add_check(std::string name, std::function<Result<>()> check);
  // Like ops::Endpoints::set_operators.
  void set_operators(ops::Endpoints::ScrapeOperator scrape);
  // Like ops::Endpoints::listen. Call it before start().
  [[nodiscard]] Result<> listen(std::string_view address);

  // `on_leading` is called on the main loop, once. If the Lease is lost after that, the process
  // exits at once with code 1: a new process has no outdated state.
  void start(std::function<void()> on_leading);
  // For the main loop: releases the Lease, then stops the endpoints. Requires that all work of the
  // leader has stopped.
  // Keep: for a successor of the same identity, which leads as soon as it asks for the Lease.
  enum class Leaving : std::uint8_t { Release, Keep };
  [[nodiscard]] io::Task<void> stop(Leaving leaving);

 private:
  void on_stopped();
  void on_dead(const std::string& why);
  [[nodiscard]] io::Task<void> give_up();
  [[nodiscard]] io::Task<void> end(Leaving leaving, io::OneShot<bool> ended);
  [[noreturn]] void end_process(std::string_view why);

  const Parts parts_;
  const Log log_;
  std::function<void()> on_leading_;

  io::Loop loop_;
  // Separate from the process's metrics: the renewal must not wait for a scrape that has
  // locked those.
  Metrics metrics_;
  http::Client http_;
  std::shared_ptr<kube::Credentials> credentials_;
  kube::Client client_;
  std::unique_ptr<reconcile::LeaderElector> elector_;  // Null without a Lease.
  ops::Endpoints endpoints_;
  ops::LoopWatch watch_;
  bool is_ending_ = false;
  std::jthread thread_;
};

}  // namespace hangar::host
