// The modules that an administrator allows others to reference.
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
  // Globs as Go's path.Match reads them (`*` stops at a slash). Without any, everything is allowed.
  explicit AllowList(std::vector<std::string> globs) : globs_(std::move(globs)) {}

  // InvalidInput when no glob matches the reference. The globs are compared with the parsed form of
  // the reference (Reference::meaning()), so that no spelling makes a glob for one host match
  // another host. The path and the query of a URL are matched apart, unless the glob has a `?`; a
  // path that servers may read as another one has to be one of the globs as it is.
  [[nodiscard]] Result<> check(const Reference& reference) const;

  // The list for references that are a Reference::place(): it also has each glob without its tag,
  // digest or query.
  [[nodiscard]] AllowList of_places() const;

 private:
  std::vector<std::string> globs_;
};

}  // namespace hangar::modules
