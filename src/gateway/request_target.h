// The parsed method, path and query of a guest's request to the API server.
//
// The parser follows the API server's (RequestInfo) but is stricter: it refuses a path that two
// parsers could read differently. The request that goes upstream is rebuilt from the parsed values,
// so that the API server does exactly what was authorised here.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

// Other: anything that is forwarded without being interpreted.
enum class Verb : std::uint8_t {
  Get,
  List,
  Watch,
  Create,
  Update,
  Patch,
  Delete,
  DeleteCollection,
  Other
};
// As RBAC writes it: "deletecollection".
[[nodiscard]] std::string_view name_of(Verb verb);

// The metav1.ListOptions that decide where an answer may come from.
struct ReadOptions {
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  std::string resource_version_match;
  std::string continue_token;
  std::int64_t limit = 0;
  std::optional<std::int64_t> timeout_seconds;
  std::optional<bool> send_initial_events;
  bool allow_watch_bookmarks = false;
  // A number does not parse: the API server has to refuse it.
  bool is_malformed = false;
};

struct RequestTarget {
  Verb verb = Verb::Other;
  // Set for a resource path; all empty for other paths ("/version", "/apis"). As in RequestInfo,
  // the namespace of /api/v1/namespaces/x is x.
  std::string group;
  std::string version;
  std::string plural;
  std::string namespace_;
  std::string name;
  std::string subresource;
  // /api/v1/namespaces/x, not /api/v1/namespaces/x/namespaces/x, which has the same attributes.
  bool is_namespace_itself = false;
  // /api/v1/watch/pods.
  bool is_legacy_watch = false;
  ReadOptions options;

  // Decoded, in the order of the request.
  std::vector<std::string> segments;
  std::vector<std::pair<std::string, std::string>> query;
  bool ends_with_slash = false;

  [[nodiscard]] bool is_resource() const { return !plural.empty(); }
  // The first value of that name, which is the one that the API server takes; null when there
  // is none.
  [[nodiscard]] const std::string* parameter(std::string_view name_in) const;
  // Changes a read so that it accepts nothing older than the newest state.
  void ask_for_newest();
  // Path and query, encoded, to send upstream.
  [[nodiscard]] std::string to_string() const;
};

// Errors: InvalidInput, with what is wrong. Of an absolute URI only the path and query count: the
// host name that a guest uses for the API server does not matter.
[[nodiscard]] Result<RequestTarget> parse_target(std::string_view method, std::string_view target);

}  // namespace hangar::gateway
