#include "guest/memory_grant.h"

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

namespace hangar::guest {

namespace {

// A request adds half of the needed memory, at most this, so that a guest that grows page by page
// does not ask for each page. The bound is small because unused memory is missing elsewhere.
constexpr std::uint64_t kStepBytesMax = 4 * limits::kMiB;

// The host answers within a turn of its loop, however long that takes. The worker is blocked
// meanwhile. If the host exits, this process exits, too.
constexpr std::chrono::seconds kAnswerMax{60};

}  // namespace

Result<> MemoryGrant::reserve(std::uint64_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    if (bytes <= granted_bytes_) return {};
  }
  const std::uint64_t step = std::min(bytes / 2, kStepBytesMax);
  const std::uint64_t more = std::max(bytes, std::min(bytes_max_, bytes + step));
  if (ask_for(more)) return {};
  // The larger step was refused; the exact amount may still fit.
  return ask_for(bytes);
}

Result<> MemoryGrant::ask_for(std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  if (bytes > bytes_max_) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the run's limit is {}", budget::size_text(bytes_max_)));
  }
  if (has_given_up_) {
    return fail(ErrorKind::LimitExceeded, "the host did not answer an earlier request for memory");
  }
  answer_.reset();
  ask_(bytes);
  if (!answered_.wait_for(lock, kAnswerMax, [this] { return answer_.has_value(); })) {
    has_given_up_ = true;
    return fail(ErrorKind::Unavailable, "the host did not answer in time");
  }
  if (!answer_->empty()) return fail(ErrorKind::LimitExceeded, *std::exchange(answer_, {}));
  granted_bytes_ = bytes;
  return {};
}

void MemoryGrant::grant(std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  granted_bytes_ = bytes;
}

void MemoryGrant::answer(std::string refusal) {
  // notify_one() under the lock: the waiting run may destroy this object as soon as the mutex
  // is free.
  const std::scoped_lock lock(mutex_);
  answer_ = std::move(refusal);
  answered_.notify_one();
}

}  // namespace hangar::guest
