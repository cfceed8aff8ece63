#include "kube/watch/watch_event.h"

#include "base/result.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/object_text.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube {

namespace {

constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

std::optional<Change::Type> change_type(std::string_view word) {
  if (word == "ADDED") return Change::Type::Added;
  if (word == "MODIFIED") return Change::Type::Modified;
  if (word == "DELETED") return Change::Type::Deleted;
  return std::nullopt;
}

// The type and the object's bytes in a line as the API server writes it,
// {"type":"ADDED","object":{...}}, so that the object is read once and no document is
// built. The reader of the bytes checks that they are one JSON value; if not, the line was
// written differently.
struct Envelope {
  std::string_view type;
  std::string_view object;
};
std::optional<Envelope> open_usual_envelope(std::string_view line) {
  constexpr std::string_view kBegin = R"({"type":")";
  constexpr std::string_view kMiddle = R"(","object":)";
  if (!line.starts_with(kBegin) || !line.ends_with('}')) return std::nullopt;
  line.remove_prefix(kBegin.size());
  line.remove_suffix(1);
  const std::size_t type_size = line.find('"');
  if (type_size == std::string_view::npos || !line.substr(type_size).starts_with(kMiddle)) {
    return std::nullopt;
  }
  return Envelope{line.substr(0, type_size), line.substr(type_size + kMiddle.size())};
}

Result<WatchEvent> read_event(const json::Value& event) {
  const std::string_view type = json::string_at(event, {"type"});
  const json::Value* object = json::find(event, {"object"});
  if (object == nullptr || !object->is_object()) {
    return fail(ErrorKind::InvalidInput, "watch event has no object");
  }
  if (const auto change = change_type(type)) {
    return Change{*change, HANGAR_TRY(Object::make(json::dump(*object)))};
  }
  if (type == "BOOKMARK") {
    return Bookmark{
        std::string(json::string_at(*object, {"metadata", "resourceVersion"})),
        json::string_at(*object, {"metadata", "annotations", kInitialEventsEnd}) == "true"};
  }
  if (type == "ERROR") {
    const auto code = static_cast<int>(json::int_at(*object, {"code"}, 500));
    return StreamError{error_from_status(code, json::dump(*object))};
  }
  return fail(ErrorKind::InvalidInput, "watch event has an unknown type");
}

}  // namespace

Result<WatchEvent> parse_watch_event(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r'))
    line.remove_suffix(1);
  // The text around the object is short; managedFields, which we drop, count towards the
  // limit, too.
  if (line.size() > limits::kObjectTextBytesMax) {
    return fail(ErrorKind::LimitExceeded, "watch event is larger than any stored object");
  }
  if (const auto envelope = open_usual_envelope(line)) {
    if (const auto change = change_type(envelope->type)) {
      if (auto object = Object::make(envelope->object)) return Change{*change, *std::move(object)};
    }
  }
  const json::Value event = HANGAR_TRY(json::parse(line));
  return read_event(event);
}

}  // namespace hangar::kube
