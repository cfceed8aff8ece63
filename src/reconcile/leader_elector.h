// Makes this process lead while it holds a Lease, and reports when it starts and stops leading.
//
// Drives the ElectionMachine with requests and timers. Loop thread only.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/fence.h"
#include "reconcile/election_machine.h"

#include <functional>
#include <memory>
#include <string>

namespace hangar::reconcile {

class LeaderElector {
 public:
  struct Options {
    std::string namespace_;
    std::string name;
    ElectionMachine::Options election;
  };
  // `on_stopped` means that the lead is lost: work that may only run as leader has `lease_duration
  // - renew_deadline` to stop. Another `on_started` may follow.
  struct Handlers {
    std::function<void()> on_started = {};
    std::function<void()> on_stopped = {};
  };

  // `client` and `metrics` outlive it. `fence`, if any, is open while this process leads: it stops
  // writes in time even if this loop gets no processor time to do so.
  LeaderElector(io::Loop& loop, const kube::Client& client, std::shared_ptr<kube::Fence> fence,
                Metrics& metrics, Log log, Options options, Handlers handlers);
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;
  // Call stop() first, or the next leader waits until the Lease expires.
  ~LeaderElector();

  void start();
  // Releases the Lease, so that another process can lead at once. Requires that work that may only
  // run as leader has stopped. Takes a few seconds at most when the server does not answer.
  [[nodiscard]] io::Task<void> stop();

  // Reads the clock, so the answer is exact even if the loop was blocked.
  [[nodiscard]] bool is_leading() const;
  // The holder of the Lease as last seen; empty: none.
  [[nodiscard]] std::string holder() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::reconcile
