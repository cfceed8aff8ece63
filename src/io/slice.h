// Limits how much work one task does on the loop thread before it yields to all other tasks.
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

  // Counts work on `bytes`. True: the slice is used up, and the task must await rest() before it
  // does more.
  [[nodiscard]] bool is_used_up_by(std::uint64_t bytes) {
    used_bytes_ += bytes;
    return used_bytes_ >= bytes_max_;
  }

  // Ends this turn of the loop. Cancelled.
  [[nodiscard]] Task<Result<>> rest(std::stop_token stop) {
    renew();
    return loop_.sleep(Duration::zero(), std::move(stop));
  }

  // Call it after the task has waited for something else: other tasks have run meanwhile.
  void renew() { used_bytes_ = 0; }

 private:
  Loop& loop_;
  const std::uint64_t bytes_max_;
  std::uint64_t used_bytes_ = 0;
};

}  // namespace hangar::io
