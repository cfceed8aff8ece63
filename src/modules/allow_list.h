// Which modules an administrator lets others name.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::modules {

class AllowList {
 public:
  // Allows everything.
  AllowList() = default;
  // Globs as Go's path.Match reads them (`*` stops at a slash); none: everything is allowed.
  explicit AllowList(std::vector<std::string> globs) : globs_(std::move(globs)) {}

  // InvalidInput when none of the globs is about this reference, which is as its author wrote it.
  [[nodiscard]] Result<> check(std::string_view reference) const;

 private:
  std::vector<std::string> globs_;
};

}  // namespace hangar::modules
