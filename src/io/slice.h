// How much one task may do on the loop thread before everything else there has its turn.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstdint>
#include <stop_token>
#include <utility>

namespace hangar::io {

// Belongs to one task. Loop thread.
class Slice {
 public:
  // `bytes_max` is at least one.
  Slice(Loop& loop, std::uint64_t bytes_max) : loop_(loop), bytes_max_(bytes_max) {}

  // Counts work on `bytes`. True: nothing is left of the slice, and rest() must come before more
  // work.
  [[nodiscard]] bool is_used_up_by(std::uint64_t bytes) {
    used_bytes_ += bytes;
    return used_bytes_ >= bytes_max_;
  }

  // Ends this turn of the loop. Cancelled.
  [[nodiscard]] Task<Result<>> rest(std::stop_token stop) {
    renew();
    return loop_.sleep(Duration::zero(), std::move(stop));
  }

  // The task has waited for something else, and the loop has had its turn meanwhile.
  void renew() { used_bytes_ = 0; }

 private:
  Loop& loop_;
  const std::uint64_t bytes_max_;
  std::uint64_t used_bytes_ = 0;
};

}  // namespace hangar::io
