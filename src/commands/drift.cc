#include "commands/drift.h"

#include "json/value.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

json::Value without_bookkeeping(json::Value object) {
  for (const std::string_view member :
       {"generation", "resourceVersion", "managedFields", "creationTimestamp"}) {
    json::erase_at(object, {"metadata", member});
  }
  json::erase_at(object, {"status"});
  return object;
}

json::Value without_additions(const json::Value& expected, json::Value actual) {
  if (json::Object* const object = actual.if_object()) {
    const json::Object* const wanted = expected.if_object();
    if (wanted == nullptr) return actual;
    std::vector<std::string> added;
    for (auto& member : *object) {
      const json::Value* const one = wanted->if_contains(member.key());
      if (one == nullptr) {
        added.emplace_back(member.key());
      } else {
        member.value() = without_additions(*one, std::move(member.value()));
      }
    }
    for (const std::string& name : added)
      object->erase(name);
  } else if (json::Array* const array = actual.if_array()) {
    const json::Array* const wanted = expected.if_array();
    if (wanted == nullptr) return actual;
    for (std::size_t i = 0; i < std::min(array->size(), wanted->size()); ++i)
      (*array)[i] = without_additions((*wanted)[i], std::move((*array)[i]));
  }
  return actual;
}

}  // namespace hangar::commands
