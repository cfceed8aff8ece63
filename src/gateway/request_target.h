// What a guest's method, path and query ask of the API server.
//
// Read as the API server reads them (its RequestInfo), but without goodwill: where two readers
// could disagree about what a path means, it means nothing. What goes upstream is written anew
// from what was understood, so that what was authorised here is what is done there.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

// Other: anything that is passed on without being understood.
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

// Of metav1.ListOptions, what decides where an answer may come from.
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
  // A number is none: the API server's to refuse.
  bool is_malformed = false;
};

struct RequestTarget {
  Verb verb = Verb::Other;
  // Of a resource path; all empty for others ("/version", "/apis"). As in RequestInfo, the
  // namespace of /api/v1/namespaces/x is x.
  std::string group;
  std::string version;
  std::string plural;
  std::string namespace_;
  std::string name;
  std::string subresource;
  // /api/v1/namespaces/x, not /api/v1/namespaces/x/namespaces/x, which has the same attributes.
  bool is_namespace_itself = false;
  ReadOptions options;

  // Decoded, in their order.
  std::vector<std::string> segments;
  std::vector<std::pair<std::string, std::string>> query;
  bool ends_with_slash = false;

  [[nodiscard]] bool is_resource() const { return !plural.empty(); }
  // The first value of that name, as the API server takes it; null when there is none.
  [[nodiscard]] const std::string* parameter(std::string_view name_in) const;
  // Of a read: it takes nothing older than what there is now.
  void ask_for_newest();
  // Path and query, encoded: what goes upstream.
  [[nodiscard]] std::string to_string() const;
};

// InvalidInput says what is wrong with it. An absolute URI is taken for its path: what a guest
// calls the API server is its own affair.
[[nodiscard]] Result<RequestTarget> parse_target(std::string_view method, std::string_view target);

}  // namespace hangar::gateway
