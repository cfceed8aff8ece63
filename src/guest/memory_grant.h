// What one run may take of memory by the host's word, and how it asks for more.
#pragma once

#include "base/result.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace hangar::guest {

// The guest's worker asks and waits; the loop thread brings the answer.
class MemoryGrant {
 public:
  // `ask` sends the question; any thread.
  MemoryGrant(std::uint64_t granted_bytes, std::uint64_t bytes_max,
              std::function<void(std::uint64_t bytes)> ask)
      : ask_(std::move(ask)), bytes_max_(bytes_max), granted_bytes_(granted_bytes) {}
  MemoryGrant(const MemoryGrant&) = delete;
  MemoryGrant& operator=(const MemoryGrant&) = delete;

  // Fine when the run may have so much in all. The error is why not. Worker.
  [[nodiscard]] Result<> reserve(std::uint64_t bytes);

  // Empty: granted. Loop thread.
  void answer(std::string refusal);

 private:
  [[nodiscard]] Result<> ask_for(std::uint64_t bytes);

  const std::function<void(std::uint64_t bytes)> ask_;
  const std::uint64_t bytes_max_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::uint64_t granted_bytes_;
  std::optional<std::string> answer_;
  bool has_given_up_ = false;  // An answer that is late would be taken for the next one's.
};

}  // namespace hangar::guest
