// Pages of a guest's memory that the disk does not return.
//
// A guest's memory shows files: images and layers. The kernel reads a page when somebody uses it,
// and sends SIGBUS to the thread if the disk fails or the file has become shorter. That signal ends
// a process, and with it all guests. Here it ends one: while a thread uses a watched memory, the
// handler puts zeros in place of the whole memory and notes it, and whoever runs the guest asks for
// that note before anything that the guest has done takes effect.
#pragma once

#include "base/result.h"

#include <csignal>
#include <cstddef>
#include <span>

namespace hangar::wasm::internal {

class WatchedMemory {
 public:
  WatchedMemory() = default;
  WatchedMemory(const WatchedMemory&) = delete;
  WatchedMemory& operator=(const WatchedMemory&) = delete;

  // Handles the signal from now on, in this process and those that it forks. Any thread.
  static void handle_signals();

  // Must be the memory's present place. Whoever asked has_failed() then has no use for its bytes.
  void watch(std::span<std::byte> memory) { memory_ = memory; }
  // True when a page could not be read: all of the memory is zeros since then.
  [[nodiscard]] bool has_failed() const { return has_failed_ != 0; }
  // Unavailable if so.
  [[nodiscard]] Result<> readable() const;

  // While it exists, this thread uses the memory; one at a time.
  class Use {
   public:
    explicit Use(WatchedMemory& memory);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
  };
  // readable() of the memory that this thread uses, if it uses one.
  [[nodiscard]] static Result<> readable_here();

 private:
  static void on_signal(int signal, siginfo_t* info, void* context);

  std::span<std::byte> memory_;
  volatile std::sig_atomic_t has_failed_ = 0;
};

}  // namespace hangar::wasm::internal
