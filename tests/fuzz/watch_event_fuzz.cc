// A line of a watch: the reader of the API server's usual spelling and the reader of any JSON come
// to the same result.
#include "base/assert.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"
#include "kube/watch/watch_event.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace {

using hangar::kube::Bookmark;
using hangar::kube::Change;
using hangar::kube::StreamError;
using hangar::kube::WatchEvent;

void check_same(const WatchEvent& usual, const WatchEvent& other) {
  HANGAR_ASSERT(usual.index() == other.index(), "another type of event");
  if (const auto* const change = std::get_if<Change>(&usual)) {
    const Change& same = std::get<Change>(other);
    HANGAR_ASSERT(change->type == same.type, "another type of change");
    HANGAR_ASSERT(change->object->key() == same.object->key(), "another object");
    HANGAR_ASSERT(change->object->to_value() == same.object->to_value(), "another content");
  } else if (const auto* const bookmark = std::get_if<Bookmark>(&usual)) {
    const Bookmark& same = std::get<Bookmark>(other);
    HANGAR_ASSERT(bookmark->resource_version == same.resource_version, "another version");
    HANGAR_ASSERT(bookmark->ends_initial_events == same.ends_initial_events, "another phase");
  } else {
    HANGAR_ASSERT(
        std::get<StreamError>(usual).error.kind() == std::get<StreamError>(other).error.kind(),
        "another error");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto usual = hangar::kube::parse_watch_event(line);
  // Only the usual spelling may have an object that is nested too deep for a document.
  if (usual && !hangar::json::parse(line)) return 0;
  // The leading space keeps the line from the reader of the usual spelling.
  const auto other = hangar::kube::parse_watch_event(" " + std::string(line));
  HANGAR_ASSERT(usual.has_value() == other.has_value(), "one reader refuses the line");
  if (usual) {
    check_same(*usual, *other);
  } else {
    HANGAR_ASSERT(usual.error().kind() == other.error().kind(), "refused for another reason");
  }
  return 0;
}
