#include "wasm/internal/watched_memory.h"

#include "base/assert.h"
#include "base/result.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <functional>
#include <span>

namespace hangar::wasm::internal {

namespace {

// A signal handler has no other way to its data.
constinit thread_local WatchedMemory* used_here = nullptr;
constinit struct sigaction others{};  // Who handled the signal before.

}  // namespace

void WatchedMemory::handle_signals() {
  static const bool is_set = [] {
    struct sigaction action{};
    action.sa_sigaction = &on_signal;
    // The guest's stack may be nearly full.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, &others) == 0;
  }();
  HANGAR_ASSERT(is_set, "every process may handle its signals");
}

// Any other fault is not for this handler: it happens again under the one before.
void WatchedMemory::on_signal(int signal, siginfo_t* info, void* /*context*/) {
  WatchedMemory* const used = used_here;
  if (used != nullptr && info->si_code > 0) {
    const int error = errno;
    const std::span<std::byte> memory = used->memory_;
    const auto* const address = static_cast<const std::byte*>(info->si_addr);
    const bool is_inside = !memory.empty() && !std::less<>()(address, memory.data()) &&
                           std::less<>()(address, memory.data() + memory.size());
    // All of it at once: a guest that goes on reading makes no further signals and mappings.
    if (is_inside &&
        ::mmap(memory.data(), memory.size(), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED) {
      used->has_failed_ = 1;
      errno = error;
      return;
    }
  }
  ::sigaction(signal, &others, nullptr);
}

WatchedMemory::Use::Use(WatchedMemory& memory) {
  HANGAR_ASSERT(used_here == nullptr, "a thread runs one guest at a time");
  used_here = &memory;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

WatchedMemory::Use::~Use() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  used_here = nullptr;
}

Result<> WatchedMemory::readable() const {
  if (!has_failed()) return {};
  return fail(ErrorKind::Unavailable, "a page of the guest's memory cannot be read from the disk");
}

Result<> WatchedMemory::readable_here() {
  return used_here == nullptr ? Result<>() : used_here->readable();
}

}  // namespace hangar::wasm::internal
