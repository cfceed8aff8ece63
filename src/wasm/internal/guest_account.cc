#include "wasm/internal/guest_account.h"

#include "base/result.h"
#include "budget/accounts.h"
#include "wasm/engine.h"
#include "wasm/internal/thread_sanitizer.h"
#include "wasm/limits.h"

#include <fmt/format.h>
#include <wasmtime/store.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

// Defined in third_party/wasmtime/runtime.
extern "C" void hangar_wasmtime_limit_store(wasmtime_store_t* store, void* account,
                                            bool (*may_grow)(void* account, std::uint32_t kind,
                                                             std::size_t current,
                                                             std::size_t desired));

namespace hangar::wasm::internal {

namespace {

// The value in third_party/wasmtime/runtime.
constexpr std::uint32_t kKindMemory = 0;

// The size of a reference to a function; other references take less.
constexpr std::uint64_t kTableElementBytes = 8;

}  // namespace

void GuestAccount::limit(wasmtime_store_t& store) {
  hangar_wasmtime_limit_store(&store, this, &GuestAccount::may_grow);
}

bool GuestAccount::begin_anew(AskMemory ask_memory) {
  ask_memory_ = std::move(ask_memory);
  shortage_.reset();
  return reserve(memory_bytes_, table_bytes_);
}

bool GuestAccount::may_grow(void* account, std::uint32_t kind, std::size_t current,
                            std::size_t desired) {
  const OnGuestStack on_guest_stack;
  auto& self = *static_cast<GuestAccount*>(account);
  if (kind == kKindMemory) return self.take_memory(desired);
  return self.take_table(desired, desired - std::min(current, desired));
}

bool GuestAccount::take_memory(std::uint64_t bytes) {
  if (bytes > bytes_max_ - table_bytes_) return false;
  // A memory from a snapshot is larger than the initial memory that its module requests.
  const std::uint64_t larger = std::max(memory_bytes_, bytes);
  if (!reserve(larger, table_bytes_)) return false;
  memory_bytes_ = larger;
  return true;
}

bool GuestAccount::take_table(std::uint64_t elements, std::uint64_t elements_more) {
  if (elements > limits::kGuestTableElementsMax) return false;
  const std::uint64_t bytes = kTableElementBytes * elements_more;
  if (bytes > bytes_max_ - std::min(bytes_max_, memory_bytes_ + table_bytes_)) return false;
  if (!reserve(memory_bytes_, table_bytes_ + bytes)) return false;
  table_bytes_ += bytes;
  return true;
}

bool GuestAccount::reserve(std::uint64_t memory_bytes, std::uint64_t table_bytes) {
  const std::uint64_t bytes = memory_bytes + table_bytes + kInstanceBytes;
  if (ask_memory_) {
    const Result<> answer = ask_memory_(bytes);
    if (!answer) shortage_ = answer.error().message();
    return answer.has_value();
  }
  // The initial memory was reserved before the instance existed.
  if (!reservation_ || bytes <= reservation_->bytes()) return true;
  const auto reserved = reservation_->resize(bytes);
  if (!reserved) shortage_ = budget::to_text(reserved.error());
  return reserved.has_value();
}

Result<> explained(Result<> ended, const GuestAccount& account) {
  if (ended || !account.shortage() || ended.error().kind() == ErrorKind::Cancelled) return ended;
  return fail(ended.error().kind(), fmt::format("{}; it was refused memory before: {}",
                                                ended.error().message(), *account.shortage()));
}

}  // namespace hangar::wasm::internal
