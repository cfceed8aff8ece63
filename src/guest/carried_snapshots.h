// Snapshots of guests that this process sends to the host or receives from it.
#pragma once

#include "base/result.h"
#include "budget/consumer.h"
#include "wasm/snapshot/snapshots.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace hangar::guest {

// In memory, because this process has no file that it could write to. Any thread.
class CarriedSnapshots final : public wasm::Snapshots {
 public:
  [[nodiscard]] Result<Extent> write(std::span<const std::byte> bytes,
                                     const budget::Tenant& tenant) override;
  [[nodiscard]] Result<> read(Extent extent, std::span<std::byte> into) const override;
  void free(Extent extent) override;

 private:
  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::vector<std::byte>> by_number_;  // The number is the extent's offset.
};

}  // namespace hangar::guest
