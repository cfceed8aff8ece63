// A model of the API server for simulations: objects in memory, without a network and without a
// clock of its own.
//
// It is never trusted: tests/conformance/simulation sends the same random requests to it and to a
// real kube-apiserver and compares the answers. Its README says what it leaves out. It shares no
// code with the client that it serves, but for JSON and the names of kinds.
#pragma once

#include "base/time.h"
#include "json/value.h"
#include "simulation/field_ownership.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::simulation {

struct Caller {
  std::string user;
  std::vector<std::string> groups;
};

struct ApiRequest {
  std::string method;
  std::string target;  // Path and query, encoded.
  std::string content_type = "application/json";
  std::string accept = "application/json";
  std::string body = {};
  Caller caller = {.user = "admin", .groups = {"system:masters"}};
  // Null user: the caller acts as itself.
  std::optional<Caller> impersonated = {};
};

struct ApiAnswer {
  int status = 200;
  json::Value body;
};

// A collection that the server has.
struct ServedKind {
  std::string group;
  std::string version;
  std::string plural;
  std::string kind;
  bool is_namespaced = true;
  bool is_custom = false;
  bool has_status = false;      // As a subresource.
  bool has_generation = false;  // It counts changes of everything but metadata and status.
  bool creates_on_update = false;
  bool needs_version = false;  // To be replaced.
};

class ApiServer {
 public:
  // `seed` is for uids.
  explicit ApiServer(std::uint64_t seed);

  // The answer to any request but a watch. A watch: see open().
  [[nodiscard]] ApiAnswer handle(const ApiRequest& request, WallTime now);
  [[nodiscard]] static bool is_watch(const ApiRequest& request);

  // An open watch: the lines that the client has not got yet.
  struct Watch {
    std::string collection;  // The key of the kind.
    std::string namespace_;
    std::string label_selector;
    std::string field_selector;
    bool has_bookmarks = false;
    bool is_metadata = false;
    std::uint64_t revision = 0;  // Up to which changes were delivered.
    std::vector<std::string> first_lines = {};
    Duration lifetime{};  // As the client asks for it.
  };
  // A watch, or the answer that refuses it.
  [[nodiscard]] std::variant<ApiAnswer, Watch> open(const ApiRequest& request);
  // The lines since the last call. `is_over` is set when the stream ends after them.
  [[nodiscard]] std::vector<std::string> next_lines(Watch& watch, bool& is_over);
  [[nodiscard]] std::string bookmark(const Watch& watch) const;

  // Forgets changes before the current revision, so that watches and pages of lists from there
  // expire.
  void compact() { compacted_ = revision_; }
  [[nodiscard]] std::uint64_t revision() const { return revision_; }

  // One change of the stored objects, in their order.
  struct Change {
    std::uint64_t revision = 0;
    std::string collection;
    std::string namespace_;
    std::string name;
    json::Value before;  // Null: created.
    json::Value after;   // Null: deleted.
    std::uint64_t request = 0;
  };
  using OnChange = std::function<void(const Change&)>;
  void set_on_change(OnChange on_change) { on_change_ = std::move(on_change); }

  // For scenarios and their invariants: the stored object; null: none.
  [[nodiscard]] const json::Value* find(std::string_view collection, std::string_view namespace_,
                                        std::string_view name) const;
  [[nodiscard]] std::vector<const json::Value*> all(std::string_view collection) const;
  // Deletes objects whose owners are all gone, and finishes deletions in the foreground: one pass
  // of the garbage collector. True: it has changed something.
  bool collect_garbage(WallTime now);
  // What the rules in the store say.
  [[nodiscard]] bool allows(const Caller& caller, std::string_view verb, std::string_view group,
                            std::string_view resource, std::string_view namespace_,
                            std::string_view name) const;

 private:
  struct Stored {
    json::Value object;
    FieldOwners owners;
  };
  using Key = std::pair<std::string, std::string>;  // Namespace, name.
  struct Target;
  struct Page {
    std::uint64_t revision = 0;
    std::vector<json::Value> rest;
  };

  [[nodiscard]] std::optional<Target> parse(const ApiRequest& request) const;
  [[nodiscard]] std::optional<ApiAnswer> refuse(const ApiRequest& request, const Target& target,
                                                std::string_view verb) const;
  [[nodiscard]] ApiAnswer discover(const std::string& path) const;
  [[nodiscard]] ApiAnswer review(const ApiRequest& request, const Target& target);
  [[nodiscard]] ApiAnswer get(const Target& target) const;
  [[nodiscard]] ApiAnswer list(const ApiRequest& request, const Target& target);
  [[nodiscard]] ApiAnswer create(const Target& target, json::Value object, WallTime now);
  [[nodiscard]] ApiAnswer update(const Target& target, json::Value object, WallTime now);
  [[nodiscard]] ApiAnswer patch(const ApiRequest& request, const Target& target, WallTime now);
  [[nodiscard]] ApiAnswer apply(const Target& target, json::Value object, WallTime now);
  [[nodiscard]] ApiAnswer remove(const Target& target, const json::Value& options, WallTime now);
  [[nodiscard]] ApiAnswer insert(const Target& target, json::Value object, FieldOwners owners,
                                 WallTime now, int status);
  // Stores `object` over `old`, after the rules of an update.
  [[nodiscard]] ApiAnswer replace(const Target& target, Stored& old, json::Value object,
                                  std::optional<FieldOwners> owners);
  void commit(const ServedKind& kind, const Key& key, json::Value before, json::Value* after);
  enum class Selectors : bool { Ignored, Heeded };
  [[nodiscard]] std::vector<json::Value> selected(const Target& target, Selectors selectors) const;
  void serve_crd(const json::Value& crd);
  [[nodiscard]] std::string next_uid();

  std::map<std::string, ServedKind> kinds_;  // By collection, "plural.group".
  std::map<std::string, std::map<Key, Stored>> objects_;
  std::deque<Change> history_;
  std::map<std::string, Page> pages_;  // By continue token.
  std::uint64_t revision_ = 100;
  std::uint64_t compacted_ = 0;
  std::uint64_t uid_count_ = 0;
  std::uint64_t name_count_ = 0;
  std::uint64_t page_count_ = 0;
  std::uint64_t request_count_ = 0;
  const std::uint64_t seed_;
  OnChange on_change_;
};

}  // namespace hangar::simulation
