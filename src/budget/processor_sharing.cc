#include "budget/processor_sharing.h"

#include "base/time.h"
#include "budget/equal_rates.h"
#include "budget/rates.h"
#include "io/loop.h"

#include <algorithm>
#include <thread>

namespace hangar::budget {

ProcessorSharing::ProcessorSharing(io::Loop& loop, const Rates& rates, bool is_on)
    : loop_(loop), rates_(rates), equal_rates_(std::max(1U, std::thread::hardware_concurrency())) {
  if (is_on) look_later();
}

void ProcessorSharing::look_later() {
  timer_ = loop_.after(EqualRates::kLookEvery, [this] {
    look();
    look_later();
  });
}

void ProcessorSharing::look() {
  const Instant now = io::Loop::now();
  equal_rates_.look(rates_.uses(now), stalls_.are_processors_short(now), now);
}

}  // namespace hangar::budget
