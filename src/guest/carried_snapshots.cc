#include "guest/carried_snapshots.h"

#include "base/assert.h"
#include "base/result.h"
#include "budget/consumer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>

namespace hangar::guest {

Result<wasm::Snapshots::Extent> CarriedSnapshots::write(std::span<const std::byte> bytes,
                                                        const budget::Tenant& /*tenant*/) {
  if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
    return fail(ErrorKind::LimitExceeded, "a snapshot of more than 4 GiB");
  }
  const std::scoped_lock lock(mutex_);
  by_number_[++last_].assign(bytes.begin(), bytes.end());
  return Extent{.offset = last_, .size_bytes = static_cast<std::uint32_t>(bytes.size())};
}

Result<> CarriedSnapshots::read(Extent extent, std::span<std::byte> into) const {
  const std::scoped_lock lock(mutex_);
  const auto found = by_number_.find(extent.offset);
  HANGAR_ASSERT(found != by_number_.end() && found->second.size() == into.size(),
                "a snapshot is read as it was written");
  std::ranges::copy(found->second, into.begin());
  return {};
}

void CarriedSnapshots::free(Extent extent) {
  const std::scoped_lock lock(mutex_);
  by_number_.erase(extent.offset);
}

}  // namespace hangar::guest
