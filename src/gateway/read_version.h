// The state from which a get or list may be answered, as its options and the reader's own writes
// demand. Pure.
#pragma once

#include "gateway/request_target.h"

#include <cstdint>
#include <optional>

namespace hangar::gateway {

struct ReadVersion {
  // What the options demand of a cached answer. std::nullopt: only the API server may answer.
  std::optional<std::uint64_t> asked;
  // The same with the reader's own writes.
  std::uint64_t needed = 0;
};

// `own_version`: OwnWrites::oldest_for(). Where the options let the API server answer from a state
// before that, as it may from a cache of its own, `read` asks for its newest state afterwards. What
// asks for one exact state (`Exact`, a legacy list with limit and version, `continue`) is left as
// it is: the guest has chosen an old state.
[[nodiscard]] ReadVersion require_own_writes(RequestTarget& read, std::uint64_t own_version);

}  // namespace hangar::gateway
