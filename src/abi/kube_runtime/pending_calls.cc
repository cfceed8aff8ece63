#include "abi/kube_runtime/pending_calls.h"

#include "abi/kube_runtime/messages.h"
#include "base/limits.h"
#include "base/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace hangar::abi::kube_runtime {

namespace {

// For ever, and no overflow of any unit.
constexpr std::chrono::milliseconds kDelayMax = std::chrono::hours(24 * 365);

// As it is sent.
std::uint64_t bytes_of(const HttpRequest& request) {
  std::uint64_t total = request.method.size() + request.uri.size() + request.body.size();
  for (const auto& [name, value] : request.headers)
    total += name.size() + value.size();
  return total;
}

}  // namespace

Result<std::uint64_t> PendingCalls::add_request(HttpRequest request, bool is_stream) {
  if (waiting_.size() >= limits::kGuestRequestsWaitingMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the guest asks for more than {} requests at once",
                            limits::kGuestRequestsWaitingMax));
  }
  const std::uint64_t bytes = bytes_of(request);
  if (waiting_bytes_ + bytes > limits::kGuestRequestsWaitingBytesMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the guest's requests have more than {} bytes at once",
                            limits::kGuestRequestsWaitingBytesMax));
  }
  waiting_bytes_ += bytes;
  const std::uint64_t id = next_id_++;
  open_.emplace(id, Kind::Waiting);
  waiting_.push_back({.id = id, .is_stream = is_stream, .request = std::move(request)});
  return id;
}

Result<std::uint64_t> PendingCalls::add_delay(std::uint64_t milliseconds) {
  if (delays_ >= limits::kGuestDelaysMax) {
    return fail(
        ErrorKind::LimitExceeded,
        fmt::format("the guest waits for more than {} delays at once", limits::kGuestDelaysMax));
  }
  ++delays_;
  const std::uint64_t id = next_id_++;
  open_.emplace(id, Kind::Delay);
  const std::uint64_t most = static_cast<std::uint64_t>(kDelayMax.count());
  new_delays_.push_back(
      {.id = id, .duration = std::chrono::milliseconds(std::min(milliseconds, most))});
  return id;
}

std::vector<HttpCall> PendingCalls::take_calls() {
  std::vector<HttpCall> calls;
  while (!waiting_.empty() && requests_ < limits::kGuestRequestsMax) {
    HttpCall& call = waiting_.front();
    waiting_bytes_ -= bytes_of(call.request);
    open_[call.id] = Kind::Request;
    ++requests_;
    calls.push_back(std::move(call));
    waiting_.pop_front();
  }
  return calls;
}

std::vector<Delay> PendingCalls::take_delays() {
  return std::exchange(new_delays_, {});
}

void PendingCalls::finish(std::uint64_t id) {
  const auto found = open_.find(id);
  // What has not begun cannot finish.
  if (found == open_.end() || found->second == Kind::Waiting) return;
  --(found->second == Kind::Request ? requests_ : delays_);
  open_.erase(found);
}

}  // namespace hangar::abi::kube_runtime
