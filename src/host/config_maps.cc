#include "host/config_maps.h"

#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "modules/config_map.h"
#include "modules/requester.h"

#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::host {

namespace {

std::map<std::string, std::string> strings_of(const json::Value& object, std::string_view member) {
  std::map<std::string, std::string> strings;
  if (const json::Object* const values = json::object_at(object, {member})) {
    for (const auto& value : *values) {
      if (value.value().is_string()) strings[value.key()] = value.value().get_string();
    }
  }
  return strings;
}

}  // namespace

io::Task<Result<modules::ConfigMapContent>> ConfigMaps::read(modules::ConfigMapAccess access,
                                                             std::string name,
                                                             std::stop_token stop) {
  kube::ObjectKey key{.namespace_ = access.namespace_name(), .name = std::move(name)};
  const json::Value object = HANGAR_CO_TRY(
      co_await client_.get(kube::config_map_resource(), std::move(key), std::move(stop)));
  modules::ConfigMapContent content{.data = strings_of(object, "data"),
                                    .binary_data = strings_of(object, "binaryData")};
  content.revision = std::string(json::string_at(object, {"metadata", "uid"})) + "/" +
                     std::string(json::string_at(object, {"metadata", "resourceVersion"}));
  co_return content;
}

}  // namespace hangar::host
