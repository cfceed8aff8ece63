// How much native code stays in memory: the code of those who have run last.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace hangar::wasm::internal {

// What of this process's memory is pages of files, in bytes: native code, images of guests'
// memories, and the program itself. Zero where the system does not tell. `statm`: that file of
// /proc/self; negative: it is opened for this.
[[nodiscard]] std::uint64_t resident_file_bytes(int statm = -1);

// Twenty Go flights that are hot would hold some 500 MiB of code, of which each run needs a part,
// and getting it again from the page cache is cheap. So code is released, of whoever has not run
// for longest, when there is too much. Any thread: the one that a guest ran on does it at once,
// because a busy loop would come to it when some more have run.
template <class Module>
class ResidentCode {
 public:
  // `measure` says how many bytes are resident now.
  ResidentCode(std::uint64_t bytes_max, std::function<std::uint64_t()> measure)
      : bytes_max_(bytes_max), measure_(std::move(measure)) {}

  // The module has run, and so has pages. Those of others go if that was too much; its own stay.
  void has_run(const std::shared_ptr<const Module>& module) {
    const std::scoped_lock lock(mutex_);
    remove_gone_or(module);
    recent_.push_back(module);
    // Asking the system costs as much as a small guest's turn, and that brings little.
    unmeasured_bytes_ += module->code_bytes();
    if (unmeasured_bytes_ < bytes_max_ / kMeasurements) return;
    unmeasured_bytes_ = 0;
    while (recent_.size() > 1 && measure_() > bytes_max_) {
      if (const auto oldest = recent_.front().lock()) oldest->release_pages();
      recent_.pop_front();
    }
  }

  // Modules that are gone: of each some bytes would stay until another has run.
  void forget_gone() {
    const std::scoped_lock lock(mutex_);
    remove_gone_or(nullptr);
  }

 private:
  // Without holding any of them for a moment: who counts who holds one would count that.
  void remove_gone_or(const std::shared_ptr<const Module>& module) {
    recent_.remove_if([&module](const std::weak_ptr<const Module>& other) {
      return other.expired() || (!other.owner_before(module) && !module.owner_before(other));
    });
  }

  // Code that has run since the last look: at most this part of the bound.
  static constexpr std::uint64_t kMeasurements = 16;

  std::mutex mutex_;
  const std::uint64_t bytes_max_;
  const std::function<std::uint64_t()> measure_;
  std::list<std::weak_ptr<const Module>> recent_;  // With pages; the oldest first.
  std::uint64_t unmeasured_bytes_ = 0;
};

}  // namespace hangar::wasm::internal
