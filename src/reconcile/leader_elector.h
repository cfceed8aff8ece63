// Leads while this process holds a Lease, and says when that begins and ends.
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
  // `on_stopped` is a promise not kept elsewhere: what may act only as leader has
  // `lease_duration - renew_deadline` to end. May be followed by another `on_started`.
  struct Handlers {
    std::function<void()> on_started = {};
    std::function<void()> on_stopped = {};
  };

  // `client` and `metrics` outlive it. `fence`, if any, is open while this process leads: it is
  // what stops writes in time, also when this loop gets no processor time to say so.
  LeaderElector(io::Loop& loop, const kube::Client& client, std::shared_ptr<kube::Fence> fence,
                Metrics& metrics, Log log, Options options, Handlers handlers);
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;
  // Stop it before, or the next leader waits until the Lease expires.
  ~LeaderElector();

  void start();
  // What acts only as leader has ended before: this gives the Lease away, so that another can
  // lead at once. Bounded: some seconds when the server does not answer.
  [[nodiscard]] io::Task<void> stop();

  // Exact also when the loop was held up: asks the clock.
  [[nodiscard]] bool is_leading() const;
  // Who holds the Lease as far as was seen; empty: nobody.
  [[nodiscard]] std::string holder() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::reconcile
