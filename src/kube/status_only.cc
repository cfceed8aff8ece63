#include "kube/status_only.h"

#include "json/skim.h"
#include "kube/object.h"

#include <optional>
#include <string_view>
#include <vector>

namespace hangar::kube {

namespace {

// The keys and values of the object and of its metadata, without those that are ignored.
std::vector<std::string_view> parts_of(std::string_view object_text) {
  std::vector<std::string_view> parts;
  json::Skim skim(object_text);
  auto members = skim.object();
  while (const std::optional<std::string_view> key = skim.next_key(members)) {
    if (*key == "metadata") {
      auto fields = skim.object();
      while (const std::optional<std::string_view> field = skim.next_key(fields)) {
        const std::string_view value = skim.value();
        if (*field == "resourceVersion" || *field == "generation") continue;
        parts.push_back(*field);
        parts.push_back(value);
      }
      continue;
    }
    const std::string_view value = skim.value();
    if (*key == "status") continue;
    parts.push_back(*key);
    parts.push_back(value);
  }
  return parts;
}

}  // namespace

bool differs_in_status_only(const Object& before, const Object& after) {
  const ObjectText text_before = before.text();
  const ObjectText text_after = after.text();
  return parts_of(text_before.view()) == parts_of(text_after.view());
}

}  // namespace hangar::kube
