// What a guest has used of its rights: its recorded requests, folded by verb, resource and place.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"
#include "recorder/record.h"
#include "recorder/story.h"
#include "seeing/find.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hangar::seeing {

// What an authorizer decides about, without the name of one object.
struct Right {
  recorder::Verb verb = recorder::Verb::Other;
  std::string group;
  std::string resource;  // Plural; empty: `path` says what.
  std::string subresource;
  std::string namespace_;  // Empty: of all namespaces, or of the cluster.
  std::string path;

  auto operator<=>(const Right&) const = default;
};

struct Use {
  Right right;
  std::uint64_t count = 0;    // Requests that were not refused.
  std::uint64_t created = 0;  // Of these, updates and patches that made the object.
  std::uint64_t refused = 0;  // By 401 or 403.
  WallTime last;              // Of any of them.
  std::set<std::string> names;
  bool has_more_names = false;  // Beyond kNamesPerUseMax, or withheld.
  bool is_open = false;         // A watch that is under way now.
};

struct UsesQuestion {
  std::string namespace_;  // Empty: of an operator of `hangar run`.
  std::string name;

  friend bool operator==(const UsesQuestion&, const UsesQuestion&) = default;
};

struct FoundUses {
  recorder::Contract contract = recorder::Contract::Operator;
  std::string user;  // As whom it asked last; empty: as the host, or as who has started it.
  std::set<std::string> earlier_users;
  std::uint64_t turns = 0;
  // Whether what it asks for at its start is among the records. Of operators alone: others have no
  // life between turns.
  bool has_start = true;
  std::vector<Use> uses;              // By their rights.
  std::uint64_t uses_left_out = 0;    // Requests of rights beyond kUsesMax.
  std::set<kube::ObjectKey> sharers;  // Other guests that asked as the same user.
  std::uint64_t sharers_withheld = 0;
  recorder::ReadDirectory read;
};

// Stories in, the newest first. Pure.
class UseFold {
 public:
  explicit UseFold(UsesQuestion question) : question_(std::move(question)) {}

  void add(const recorder::Story& story);
  // NotFound when there was no turn of that guest. Without what the files say.
  [[nodiscard]] Result<FoundUses> end() &&;

 private:
  void add(const recorder::Request& request);

  const UsesQuestion question_;
  FoundUses found_;
  std::map<Right, Use> uses_;
  std::map<std::string, std::set<kube::ObjectKey>> others_;  // By their users.
  std::size_t others_count_ = 0;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> newest_;  // Host and instance.
};

[[nodiscard]] Result<FoundUses> find_uses(const RecordsPlace& place, const UsesQuestion& question,
                                          const ReadBounds& bounds);

// Watches that it has under way now, however long ago it has asked for them.
void add_open_watches(FoundUses& found, const std::vector<Right>& watches);

}  // namespace hangar::seeing
