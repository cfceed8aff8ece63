// One line of a watch's body, read.
#pragma once

#include "base/result.h"
#include "kube/object.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace hangar::kube {

// An object as it is after the change; for Deleted as it was before.
struct Change {
  enum class Type : std::uint8_t { Added, Modified, Deleted };
  Type type = Type::Added;
  ObjectPtr object;
};

// Nothing of ours changed up to here.
struct Bookmark {
  std::string resource_version;
  // Every object that existed when a WatchList began has been sent.
  bool ends_initial_events = false;
};

// The server ends the stream, and why.
struct StreamError {
  Error error;
};

using WatchEvent = std::variant<Change, Bookmark, StreamError>;

// InvalidInput for what is no event, LimitExceeded for an object that cannot have been stored.
[[nodiscard]] Result<WatchEvent> parse_watch_event(std::string_view line);

}  // namespace hangar::kube
