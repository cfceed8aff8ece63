// Extracts one program from an archive.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace hangar::node_fetch {

// Writes the only regular file that is called `name`, in whatever directory of the gzipped tar
// archive `from`, to `to`. No other entry, and no link, mode or owner of the archive touches
// the disk.
//
// Errors: InvalidInput for another format, for no such entry or several; LimitExceeded for an entry
// larger than a runtime may be; Unavailable for `to`.
[[nodiscard]] Result<> unpack_one(const std::string& from, std::string_view name,
                                  const std::string& to);

}  // namespace hangar::node_fetch
