// The rights that a guest has used: its recorded requests, grouped by verb, resource and place.
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

// The attributes that an authorizer decides on, without the name of an object.
struct Right {
  recorder::Verb verb = recorder::Verb::Other;
  std::string group;
  std::string resource;  // Plural; empty: not a resource; see `path`.
  std::string subresource;
  std::string namespace_;  // Empty: all namespaces, or cluster-scoped.
  std::string path;

  auto operator<=>(const Right&) const = default;
};

struct Use {
  Right right;
  std::uint64_t count = 0;    // Requests that were not refused.
  std::uint64_t created = 0;  // Of these, updates and patches that created the object.
  std::uint64_t refused = 0;  // Answered by 401 or 403.
  WallTime last;              // Time of the last request.
  std::set<std::string> names;
  bool has_more_names = false;  // There are more than kNamesPerUseMax, or withheld ones.
  bool is_open = false;         // The use is a watch that is open now.
};

struct UsesQuestion {
  std::string namespace_;  // Empty for an operator of `hangar run`.
  std::string name;

  friend bool operator==(const UsesQuestion&, const UsesQuestion&) = default;
};

struct FoundUses {
  recorder::Contract contract = recorder::Contract::Operator;
  std::string user;  // The last identity of its requests; empty: the host's, or that of the user of
                     // `hangar run`.
  std::set<std::string> earlier_users;
  std::uint64_t turns = 0;
  // Whether the records include the requests of its start. Only operators have a start: other
  // guests do not live between turns.
  bool has_start = true;
  std::vector<Use> uses;              // Sorted by their rights.
  std::uint64_t uses_left_out = 0;    // Requests for rights beyond kUsesMax.
  std::set<kube::ObjectKey> sharers;  // Other guests with the same user.
  std::uint64_t sharers_withheld = 0;
  recorder::ReadDirectory read;
};

// Collects uses from stories, newest first. Pure.
class UseFold {
 public:
  explicit UseFold(UsesQuestion question) : question_(std::move(question)) {}

  void add(const recorder::Story& story);
  // NotFound if no story was of that guest. Does not set `read`.
  [[nodiscard]] Result<FoundUses> end() &&;

 private:
  void add(const recorder::Request& request);

  const UsesQuestion question_;
  FoundUses found_;
  std::map<Right, Use> uses_;
  std::map<std::string, std::set<kube::ObjectKey>> others_;  // Other guests, by user.
  std::size_t others_count_ = 0;
  // Host and instance of the newest turn.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> newest_;
};

[[nodiscard]] Result<FoundUses> find_uses(const RecordsPlace& place, const UsesQuestion& question,
                                          const ReadBounds& bounds);

// Adds the watches that are open now, however long ago the guest requested them.
void add_open_watches(FoundUses& found, const std::vector<Right>& watches);

}  // namespace hangar::seeing
