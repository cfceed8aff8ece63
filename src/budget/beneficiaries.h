// For work that several tenants want and that is done once: it waits in the name of each, and
// begins with the first turn that any of them gets. Without it everyone would wait in the line of
// the one who asked first.
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

// Copies are the same beneficiaries. Loop thread.
class Beneficiaries {
 public:
  // A single consumer is the usual case, hence implicit.
  Beneficiaries(Consumer first);  // NOLINT(google-explicit-constructor)

  // One consumer of each tenant, in the order of their coming.
  [[nodiscard]] const std::vector<Consumer>& all() const;
  // On whose account is held what cannot be shared.
  [[nodiscard]] const Consumer& first() const { return all().front(); }

  // If the work waits already, it now waits in their name, too. Later additions to `others` do not
  // count here.
  void add(const Beneficiaries& others) const;

  // The slot is of whoever gets one first; the others then leave the queue. LimitExceeded: the
  // queue is full for each. Cancelled when a stop is requested first. At most one call at a time;
  // `slots` outlives it.
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
