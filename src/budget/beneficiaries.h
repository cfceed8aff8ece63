// For work that several tenants want and that is done once: it waits in the queue of each tenant,
// and starts with the first turn that any of them gets. Without it all would wait in the queue of
// the first tenant that requested the work.
#pragma once

#include "base/fair_queue.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/task.h"

#include <memory>
#include <stop_token>
#include <vector>

namespace hangar::budget {

// Copies share the same beneficiaries. Loop thread.
class Beneficiaries {
 public:
  // A single consumer is the usual case, hence implicit.
  Beneficiaries(Consumer first);  // NOLINT(google-explicit-constructor)

  // One consumer of each tenant, in the order in which they were added.
  [[nodiscard]] const std::vector<Consumer>& all() const;
  // The consumer whose account holds resources that cannot be shared.
  [[nodiscard]] const Consumer& first() const { return all().front(); }

  // If the work waits already, it now waits in their queues, too. Later additions to `others` have
  // no effect here.
  void add(const Beneficiaries& others) const;

  // Returns the slot of the first beneficiary that gets one; the others then leave the queue.
  // LimitExceeded: the queue is full for every beneficiary. Cancelled when a stop is requested
  // first. At most one call at a time; `slots` outlives it.
  [[nodiscard]] io::Task<Result<FairSlots::Slot>> acquire(FairSlots& slots, Demand demand,
                                                          std::stop_token stop) const;

 private:
  struct Wait;
  struct State;

  static void compete(const std::shared_ptr<Wait>& wait, Consumer consumer);
  static io::Task<void> run(std::shared_ptr<Wait> wait, Consumer consumer);

  std::shared_ptr<State> state_;
};

}  // namespace hangar::budget
