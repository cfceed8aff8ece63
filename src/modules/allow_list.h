// Which modules an administrator lets others name.
#pragma once

#include "base/result.h"
#include "modules/reference.h"

#include <string>
#include <utility>
#include <vector>

namespace hangar::modules {

class AllowList {
 public:
  // Allows everything.
  AllowList() = default;
  // Globs as Go's path.Match reads them (`*` stops at a slash); none: everything is allowed.
  explicit AllowList(std::vector<std::string> globs) : globs_(std::move(globs)) {}

  // InvalidInput when none of the globs is about this reference. What is compared is what it was
  // understood as (Reference::meaning()), so that no spelling makes a glob about one host fit
  // another's.
  [[nodiscard]] Result<> check(const Reference& reference) const;

 private:
  std::vector<std::string> globs_;
};

}  // namespace hangar::modules
