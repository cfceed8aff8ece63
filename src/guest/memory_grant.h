// The memory that the host has granted to one run, and the run's requests for more.
#pragma once

#include "base/result.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace hangar::guest {

// The guest's worker asks and blocks; the loop thread delivers the answer.
class MemoryGrant {
 public:
  // `ask` sends the question to the host; any thread.
  MemoryGrant(std::uint64_t granted_bytes, std::uint64_t bytes_max,
              std::function<void(std::uint64_t bytes)> ask)
      : ask_(std::move(ask)), bytes_max_(bytes_max), granted_bytes_(granted_bytes) {}
  MemoryGrant(const MemoryGrant&) = delete;
  MemoryGrant& operator=(const MemoryGrant&) = delete;

  // Succeeds when the run may have `bytes` in total; otherwise the error is the reason. Worker.
  [[nodiscard]] Result<> reserve(std::uint64_t bytes);

  // The host has granted `bytes` before a turn. Loop thread, while the guest is not on a worker.
  void grant(std::uint64_t bytes);

  // An empty `refusal` means granted. Loop thread.
  void answer(std::string refusal);

 private:
  [[nodiscard]] Result<> ask_for(std::uint64_t bytes);

  const std::function<void(std::uint64_t bytes)> ask_;
  const std::uint64_t bytes_max_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::uint64_t granted_bytes_;
  std::optional<std::string> answer_;
  bool has_given_up_ = false;  // A late answer would count for the next request.
};

}  // namespace hangar::guest
