#include "modules/requester.h"

#include "base/result.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace hangar::modules {

Result<ConfigMapAccess> Requester::config_maps_of(std::string_view namespace_name) const {
  if (namespace_ && *namespace_ != namespace_name) {
    return fail(ErrorKind::Denied,
                fmt::format("an object in namespace {} may name ConfigMaps of its own namespace "
                            "only",
                            *namespace_));
  }
  return ConfigMapAccess(std::string(namespace_name));
}

}  // namespace hangar::modules
