// Bounds how much native code stays in memory: only that of the modules that ran last.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace hangar::wasm::internal {

// The resident pages of this process that come from files, in bytes: native code, images of guests'
// memories, and the program itself. Zero if the system does not report it. `statm`: an open
// /proc/self/statm; negative: it is opened for this call.
[[nodiscard]] std::uint64_t resident_file_bytes(int statm = -1);

// Twenty busy Go flights would keep some 500 MiB of code in memory. Each run needs only a part of
// its module's code, and reading it again from the page cache is cheap. So when there is too much,
// the code of the modules that have not run for longest is released. Any thread: the thread on
// which a guest ran does it at once, because a busy loop would get to it only after further runs.
template <class Module>
class ResidentCode {
 public:
  // `measure` returns how many bytes are resident now.
  ResidentCode(std::uint64_t bytes_max, std::function<std::uint64_t()> measure)
      : bytes_max_(bytes_max), measure_(std::move(measure)) {}

  // The module has run, so it has resident pages. If the total is too large, pages of other modules
  // are released, never those of this one.
  void has_run(const std::shared_ptr<const Module>& module) {
    const std::scoped_lock lock(mutex_);
    remove_gone_or(module);
    recent_.push_back(module);
    // Measuring costs as much as a turn of a small guest, and one such turn adds little.
    unmeasured_bytes_ += module->code_bytes();
    if (unmeasured_bytes_ < bytes_max_ / kMeasurements) return;
    unmeasured_bytes_ = 0;
    while (recent_.size() > 1 && measure_() > bytes_max_) {
      if (const auto oldest = recent_.front().lock()) oldest->release_pages();
      recent_.pop_front();
    }
  }

  // Forgets destroyed modules: otherwise each would leave some bytes here until another module has
  // run.
  void forget_gone() {
    const std::scoped_lock lock(mutex_);
    remove_gone_or(nullptr);
  }

 private:
  // Never locks a weak_ptr, not even for a moment: code elsewhere looks at use_count().
  void remove_gone_or(const std::shared_ptr<const Module>& module) {
    recent_.remove_if([&module](const std::weak_ptr<const Module>& other) {
      return other.expired() || (!other.owner_before(module) && !module.owner_before(other));
    });
  }

  // How often memory is measured: whenever code of this fraction of the bound has run.
  static constexpr std::uint64_t kMeasurements = 16;

  std::mutex mutex_;
  const std::uint64_t bytes_max_;
  const std::function<std::uint64_t()> measure_;
  std::list<std::weak_ptr<const Module>> recent_;  // Modules with resident pages; the oldest first.
  std::uint64_t unmeasured_bytes_ = 0;
};

}  // namespace hangar::wasm::internal
