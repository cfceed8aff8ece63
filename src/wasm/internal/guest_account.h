// Counts and bounds the memory of one instance. wasmtime asks it before each growth; it reserves
// the memory in the accounts of all guests, and releases it when it is destroyed.
#pragma once

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "wasm/engine.h"
#include "wasm/limits.h"

#include <wasmtime/store.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace hangar::wasm::internal {

// Counts linear memory and all tables together: an instance has one memory, and as many tables as
// its module declares. Destroyed after its store. Used on the worker that has the store, unless a
// function says otherwise.
class GuestAccount {
 public:
  // `ask_memory` as in RunLimits; with it there is no reservation.
  GuestAccount(std::uint64_t bytes_max, std::optional<budget::Reservation> reservation,
               AskMemory ask_memory = {})
      : bytes_max_(bytes_max),
        reservation_(std::move(reservation)),
        ask_memory_(std::move(ask_memory)) {}
  GuestAccount(const GuestAccount&) = delete;
  GuestAccount& operator=(const GuestAccount&) = delete;

  // From now on, counts everything that instances of `store` allocate.
  void limit(wasmtime_store_t& store);
  // Counts the initial memory of a guest from a snapshot, which may be larger than its module
  // declares. False when it is more than the limit.
  [[nodiscard]] bool begin_with(std::uint64_t memory_bytes) { return take_memory(memory_bytes); }
  // For an instance that was kept for another run, which has its own memory: from now on asks
  // `ask_memory`, first for what the instance has. False when that is refused.
  [[nodiscard]] bool begin_anew(AskMemory ask_memory);

  [[nodiscard]] std::uint64_t bytes_max() const { return bytes_max_; }
  // Why the guest was refused memory within its own limit; std::nullopt if it never was.
  [[nodiscard]] const std::optional<std::string>& shortage() const { return shortage_; }
  // The size of all tables. Any thread.
  [[nodiscard]] std::uint64_t table_bytes() const { return table_bytes_.load(); }

 private:
  static bool may_grow(void* account, std::uint32_t kind, std::size_t current, std::size_t desired);

  [[nodiscard]] bool take_memory(std::uint64_t bytes);
  [[nodiscard]] bool take_table(std::uint64_t elements, std::uint64_t elements_more);

  const std::uint64_t bytes_max_;
  [[nodiscard]] bool reserve(std::uint64_t memory_bytes, std::uint64_t table_bytes);

  std::optional<budget::Reservation> reservation_;  // std::nullopt without accounts.
  AskMemory ask_memory_;
  std::optional<std::string> shortage_;
  std::uint64_t memory_bytes_ = 0;
  std::atomic<std::uint64_t> table_bytes_ = 0;
};

// Adds the shortage to the error of a guest that failed after memory was refused.
[[nodiscard]] Result<> explained(Result<> ended, const GuestAccount& account);

}  // namespace hangar::wasm::internal
