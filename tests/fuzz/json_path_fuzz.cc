// A JSONPath (the first line) and a document, both from a workflow's machine: each match is a part
// of the document, occurs once, and is found again by the same question.
#include "base/assert.h"
#include "json/value.h"
#include "workflows/json_path.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace {

using hangar::json::Value;

void collect(const Value& value, std::vector<const Value*>& all) {
  all.push_back(&value);
  if (value.is_array()) {
    for (const Value& element : value.get_array())
      collect(element, all);
  } else if (value.is_object()) {
    for (const auto& member : value.get_object())
      collect(member.value(), all);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = text.find('\n');
  const auto path = hangar::workflows::JsonPath::parse(text.substr(0, line));
  if (!path || line == std::string_view::npos) return 0;
  const auto document = hangar::json::parse(text.substr(line + 1));
  if (!document) return 0;

  const std::vector<const Value*> found = path->find(*document);

  std::vector<const Value*> all;
  collect(*document, all);
  std::ranges::sort(all);
  std::vector<const Value*> unique = found;
  std::ranges::sort(unique);
  HANGAR_ASSERT(std::ranges::adjacent_find(unique) == unique.end(), "found twice");
  HANGAR_ASSERT(std::ranges::includes(all, unique), "outside of the document");
  HANGAR_ASSERT(path->find(*document) == found, "found something else the second time");
  for (const Value* const value : found)
    (void)hangar::workflows::text_of(*value);
  return 0;
}
