#include "modules/allow_list.h"

#include "base/result.h"
#include "modules/reference.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <string>

namespace hangar::modules {

Result<> AllowList::check(const Reference& reference) const {
  if (globs_.empty()) return {};
  const std::string text = reference.meaning();
  const bool is_allowed = std::ranges::any_of(globs_, [&text](const std::string& glob) {
    return ::fnmatch(glob.c_str(), text.c_str(), FNM_PATHNAME) == 0;
  });
  // fnmatch() stops at a null byte.
  if (is_allowed && !text.contains('\0')) return {};
  return fail(ErrorKind::InvalidInput,
              fmt::format("module \"{}\" not allowed", reference.display()));
}

}  // namespace hangar::modules
