// Removes the oldest records of some namespaces from a file's bytes. Pure.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "recorder/format.h"
#include "recorder/holdings.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace hangar::recorder {

// The records that a namespace gave up.
struct GivenUpRecords {
  std::uint64_t count = 0;    // Includes the counts of removed GivenUp records.
  std::uint64_t records = 0;  // Without those.
  WallTime until;             // The newest of them.
};

struct Thinned {
  FileHeader header;
  std::string blocks;  // The remaining records in their order, as blocks. Empty: none remain.
  Holdings held;
  std::map<std::string, GivenUpRecords, std::less<>> given_up;
};
// Removes records, oldest first, as long as their namespace owes bytes, and reduces `owed` by their
// sizes. A damaged rest of the file is left out. InvalidInput as in read().
[[nodiscard]] Result<Thinned> thin(std::string_view file, Holdings& owed);

// A file of which the bytes of each namespace are known.
struct Measured {
  FileHeader header;
  Holdings held;
};
[[nodiscard]] Result<Measured> measure(std::string_view file);

}  // namespace hangar::recorder
