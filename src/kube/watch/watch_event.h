// Parses one line of a watch's body.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace hangar::kube {

// The object as it is after the change; for Deleted, as it was before.
struct Change {
  enum class Type : std::uint8_t { Added, Modified, Deleted };
  Type type = Type::Added;
  ObjectPtr object;
  // The processor time that reading the event took.
  Duration read_time{};
};

// None of the watched objects changed up to this version.
struct Bookmark {
  std::string resource_version;
  // The server has sent every object that existed when the WatchList began.
  bool ends_initial_events = false;
};

// The server ends the stream for this reason.
struct StreamError {
  Error error;
};

using WatchEvent = std::variant<Change, Bookmark, StreamError>;

// InvalidInput for a line that is not an event, LimitExceeded for an object too large to be stored.
[[nodiscard]] Result<WatchEvent> parse_watch_event(std::string_view line);

}  // namespace hangar::kube
