#include "commands/used_rights.h"

#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "commands/guest_names.h"
#include "commands/held_rights.h"
#include "commands/rbac.h"
#include "commands/story_text.h"
#include "commands/tenant_rights.h"
#include "json/texts.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"
#include "recorder/record.h"
#include "recorder/story_json.h"
#include "seeing/messages.h"
#include "seeing/uses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

using recorder::Contract;
using recorder::Verb;
using seeing::FoundUses;
using seeing::Right;
using seeing::Use;

// With more names a role is harder to read than one without names, and hardly narrower.
constexpr std::size_t kTouchedMax = 16;
// Lines for one binding in the remarks.
constexpr std::size_t kLinesMax = 50;

std::size_t rank_of(std::string_view verb) {
  return static_cast<std::size_t>(std::ranges::find(kResourceVerbs, verb) - kResourceVerbs.begin());
}

struct ByRank {
  bool operator()(const std::string& left, const std::string& right) const {
    return std::tuple(rank_of(left), std::string_view(left)) <
           std::tuple(rank_of(right), std::string_view(right));
  }
};
using Verbs = std::set<std::string, ByRank>;
using Names = std::set<std::string>;

// A resource, as in a rule.
struct Resource {
  std::string group;
  std::string name;  // "deployments/scale".

  auto operator<=>(const Resource&) const = default;
  [[nodiscard]] std::string in_words() const {
    const std::size_t slash = std::min(name.find('/'), name.size());
    return name.substr(0, slash) + (group.empty() ? "" : "." + group) + name.substr(slash);
  }
};

// The rights that are needed in one place: verbs of resources, each with the names of objects; no
// names: all objects.
struct Needs {
  std::map<Resource, std::map<std::string, Names, ByRank>> resources;
  std::set<std::string> paths;  // Only in the cluster's place.

  [[nodiscard]] bool is_empty() const { return resources.empty() && paths.empty(); }
};
// By namespace; empty: the whole cluster.
using Places = std::map<std::string, Needs>;

bool is_plain(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  return text.find_first_not_of(kPlain) == std::string_view::npos;
}

// A valid name of an object: one segment of a path.
bool is_name(std::string_view text) {
  return !text.empty() && printable(text) == text && text.find_first_of("/%* ") == text.npos;
}

bool is_plain(const Right& right) {
  return is_plain(right.group) && is_plain(right.resource) && is_plain(right.subresource) &&
         is_plain(right.namespace_) && right.path.find_first_of("*\\ ()") == std::string::npos;
}

// Whether Kubernetes allows this to all authenticated users (system:discovery, system:basic-user).
bool is_everybodys(const Right& right) {
  if (!right.resource.empty()) {
    const bool is_own_review =
        right.verb == Verb::Create &&
        (right.group == "authorization.k8s.io" || right.group == "authentication.k8s.io") &&
        right.resource.starts_with("self");
    return is_own_review;
  }
  constexpr std::array<std::string_view, 7> kPaths = {"/api",     "/apis",   "/healthz", "/livez",
                                                      "/openapi", "/readyz", "/version"};
  return std::ranges::any_of(kPaths, [&right](std::string_view path) {
    return right.path.starts_with(path) &&
           (right.path.size() == path.size() || right.path[path.size()] == '/');
  });
}

Resource resource_of(const Right& right) {
  return {.group = right.group,
          .name = right.subresource.empty() ? right.resource
                                            : right.resource + "/" + right.subresource};
}

std::string place_in_words(const std::string& namespace_) {
  return namespace_.empty() ? "the cluster" : "namespace " + namespace_;
}

std::string right_in_words(const Right& right) {
  if (right.resource.empty()) return printable(right.path);
  return printable(fmt::format("{} {} in {}", recorder::name_of(right.verb),
                               resource_of(right).in_words(), place_in_words(right.namespace_)));
}

// Nothing if the user is not a ServiceAccount.
std::optional<ServiceAccount> account_of(std::string_view user) {
  if (!user.starts_with(kube::kServiceAccountPrefix)) return std::nullopt;
  Result<ServiceAccount> account =
      parse_service_account(user.substr(kube::kServiceAccountPrefix.size()));
  if (!account) return std::nullopt;
  return *std::move(account);
}

// Needs -------------------------------------------------------------------------------------------

class Gatherer {
 public:
  Gatherer(const FoundUses& found, const RoleOptions& options) : found_(found), options_(options) {}

  [[nodiscard]] Places gather(std::vector<std::string>& remarks) {
    for (const Use& use : found_.uses)
      take(use);
    drop_what_the_cluster_covers();
    if (odd_ > 0) {
      remarks.push_back(fmt::format(
          "{} requests were for things with odd names, such as wildcards, and are left out.",
          odd_));
    }
    if (!everybodys_.empty()) {
      remarks.push_back(
          fmt::format("Omitted rights that every user has: {}.", fmt::join(everybodys_, ", ")));
    }
    if (has_added_lists_) {
      remarks.emplace_back(
          "The records do not cover its start: `list` was added where it watches, and other rights "
          "that it needs only at its start are missing. Restart it and run the command again.");
    }
    return std::move(places_);
  }

 private:
  void take(const Use& use) {
    const Right& right = use.right;
    if (use.count == 0 && !use.is_open) return;  // All requests were refused.
    if (!is_plain(right)) {
      odd_ += use.count;
      return;
    }
    if (is_everybodys(right)) {
      constexpr std::size_t kMost = 8;
      if (everybodys_.size() < kMost)
        everybodys_.insert(right.resource.empty() ? right.path : right.resource);
      return;
    }
    if (right.resource.empty()) {
      places_[""].paths.insert(right.path);
      return;
    }
    if (right.verb == Verb::Other) {
      odd_ += use.count;
      return;
    }
    add(right, std::string(recorder::name_of(right.verb)), touched(use));
    if (use.created > 0) add(right, "create", {});
    if (right.verb == Verb::Watch && !found_.has_start) {
      has_added_lists_ = true;
      add(right, "list", {});
    }
    if (right.verb != Verb::Patch || !right.subresource.empty()) return;
    // For workflows and flights hangar applies objects, which may create them. For flights it also
    // reads the objects before, and deletes them when the flight no longer prints them.
    if (found_.contract != Contract::Operator) add(right, "create", {});
    if (found_.contract == Contract::Airway) {
      add(right, "get", touched(use));
      add(right, "delete", touched(use));
    }
  }

  [[nodiscard]] Names touched(const Use& use) const {
    if (options_.names != RoleNames::Touched) return {};
    const bool has_names = is_by_name(use.right.verb) && !use.has_more_names && use.created == 0 &&
                           !use.names.empty() && use.names.size() <= kTouchedMax &&
                           std::ranges::all_of(use.names, is_name);
    return has_names && !knows_more(use.right) ? use.names : Names();
  }

  static bool is_by_name(Verb verb) {
    return verb == Verb::Get || verb == Verb::Update || verb == Verb::Patch || verb == Verb::Delete;
  }

  // Whether the guest lists, watches or creates such objects: then the names will change.
  [[nodiscard]] bool knows_more(const Right& right) const {
    return std::ranges::any_of(found_.uses, [&](const Use& use) {
      const bool is_of_it =
          use.right.group == right.group && use.right.resource == right.resource &&
          use.right.subresource.empty() &&
          (use.right.namespace_.empty() || use.right.namespace_ == right.namespace_);
      const bool is_used = use.count > 0 || use.is_open;
      const bool is_applied =
          use.right.verb == Verb::Patch && found_.contract != Contract::Operator;
      return is_of_it && is_used && (!is_by_name(use.right.verb) || use.created > 0 || is_applied);
    });
  }

  void add(const Right& right, const std::string& verb, const Names& names) {
    auto& verbs = places_[right.namespace_].resources[resource_of(right)];
    const auto known = verbs.find(verb);
    if (known == verbs.end()) {
      verbs.emplace(verb, names);
    } else if (names.empty() || known->second.empty()) {
      known->second.clear();
    } else {
      known->second.insert(names.begin(), names.end());
    }
  }

  void drop_what_the_cluster_covers() {
    const auto cluster = places_.find("");
    if (cluster == places_.end()) return;
    for (auto& [namespace_, needs] : places_) {
      if (namespace_.empty()) continue;
      for (auto& [resource, verbs] : needs.resources) {
        const auto all = cluster->second.resources.find(resource);
        if (all == cluster->second.resources.end()) continue;
        std::erase_if(verbs, [&all](const auto& one) {
          const auto wide = all->second.find(one.first);
          return wide != all->second.end() && wide->second.empty();
        });
      }
      std::erase_if(needs.resources, [](const auto& one) { return one.second.empty(); });
    }
    std::erase_if(places_, [](const auto& one) { return one.second.is_empty(); });
  }

  const FoundUses& found_;
  const RoleOptions& options_;
  Places places_;
  std::uint64_t odd_ = 0;
  std::set<std::string> everybodys_;
  bool has_added_lists_ = false;
};

// Manifests ---------------------------------------------------------------------------------------

json::Array rules_of(const Needs& needs) {
  // Merges verbs for the same names into one rule, then resources with the same verbs.
  std::map<std::tuple<std::string, Names, Verbs>, std::set<std::string>> merged;
  for (const auto& [resource, verbs] : needs.resources) {
    std::map<Names, Verbs> by_names;
    for (const auto& [verb, names] : verbs)
      by_names[names].insert(verb);
    for (const auto& [names, of_names] : by_names)
      merged[{resource.group, names, of_names}].insert(resource.name);
  }
  json::Array rules;
  for (const auto& [key, resources] : merged) {
    const auto& [group, names, verbs] = key;
    json::Object rule{{"apiGroups", json::Array{json::String(group)}},
                      {"resources", json::array_of(resources)}};
    if (!names.empty()) rule["resourceNames"] = json::array_of(names);
    rule["verbs"] = json::array_of(verbs);
    rules.emplace_back(std::move(rule));
  }
  if (!needs.paths.empty()) {
    rules.emplace_back(json::Object{{"nonResourceURLs", json::array_of(needs.paths)},
                                    {"verbs", json::Array{"get"}}});
  }
  return rules;
}

json::Object object_of(std::string_view kind, const std::string& name,
                       const std::string& namespace_) {
  json::Object metadata{{"name", name}};
  if (!namespace_.empty()) metadata["namespace"] = namespace_;
  return {{"apiVersion", fmt::format("{}/v1", kRbacGroup)},
          {"kind", json::String(kind)},
          {"metadata", std::move(metadata)}};
}

void add_manifests(const std::string& namespace_, const Needs& needs, const std::string& name,
                   const std::string& user, std::vector<json::Value>& manifests) {
  const std::string prefix = namespace_.empty() ? "Cluster" : "";
  json::Object role = object_of(prefix + "Role", name, namespace_);
  role["rules"] = rules_of(needs);
  manifests.emplace_back(std::move(role));
  const std::optional<ServiceAccount> account = account_of(user);
  if (!account) return;
  json::Object binding = object_of(prefix + "RoleBinding", name, namespace_);
  binding["roleRef"] = json::Object{
      {"apiGroup", json::String(kRbacGroup)}, {"kind", prefix + "Role"}, {"name", name}};
  binding["subjects"] = json::Array{json::Object{
      {"kind", "ServiceAccount"}, {"name", account->name}, {"namespace", account->namespace_}}};
  manifests.emplace_back(std::move(binding));
}

// Held rights -------------------------------------------------------------------------------------

// The verbs that the guest has used on the resource of a rule, in the place of its binding.
Verbs used_verbs(const Places& places, const std::string& namespace_, const std::string& group,
                 const std::string& resource) {
  Verbs used;
  for (const auto& [place, needs] : places) {
    if (!namespace_.empty() && place != namespace_) continue;
    for (const auto& [needed, verbs] : needs.resources) {
      const bool is_it =
          (group == "*" || group == needed.group) &&
          (resource == "*" || resource == needed.name ||
           (resource.starts_with("*/") && needed.name.ends_with(resource.substr(1))));
      if (!is_it) continue;
      for (const auto& [verb, names] : verbs)
        used.insert(verb);
    }
  }
  return used;
}

std::string line_of(const json::Value& rule, const std::string& group, const std::string& resource,
                    const HeldBinding& binding, const Places& places) {
  const Resource named{.group = group, .name = resource};
  const std::set<std::string> given = json::texts_at(rule, {"verbs"});
  const Verbs used = used_verbs(places, binding.namespace_, group, resource);
  std::string what = printable(named.in_words());
  if (const std::set<std::string> names = json::texts_at(rule, {"resourceNames"}); !names.empty()) {
    what += printable(fmt::format(" ({})", fmt::join(names, ", ")));
  }
  if (given.contains("*")) {
    return used.empty() ? fmt::format("{}: unused *", what)
                        : fmt::format("{}: unused * but for {}", what, fmt::join(used, ", "));
  }
  Verbs unused;
  for (const std::string& verb : given)
    if (!used.contains(verb)) unused.insert(printable(verb));
  if (unused.empty() && group != "*" && resource != "*") return {};
  if (unused.empty()) return fmt::format("{}: used in part", what);
  return fmt::format("{}: unused {}", what, fmt::join(unused, ", "));
}

void tell_held(const HeldBinding& binding, const Places& places,
               std::vector<std::string>& remarks) {
  const std::string kind = binding.namespace_.empty() ? "ClusterRoleBinding" : "RoleBinding";
  const std::string name =
      binding.namespace_.empty() ? binding.name : binding.namespace_ + "/" + binding.name;
  std::string head = printable(fmt::format("{} {} gives {} {} to {}", kind, name, binding.role_kind,
                                           binding.role_name, binding.subject));
  if (!binding.rules) {
    remarks.push_back(
        fmt::format("  {}, which could not be read: {}", head, printable(binding.problem)));
    return;
  }
  std::vector<std::string> lines;
  for (const json::Value& rule : *binding.rules) {
    for (const std::string& group : json::texts_at(rule, {"apiGroups"})) {
      for (const std::string& resource : json::texts_at(rule, {"resources"})) {
        std::string line = line_of(rule, group, resource, binding, places);
        if (!line.empty()) lines.push_back(std::move(line));
      }
    }
    for (const std::string& path : json::texts_at(rule, {"nonResourceURLs"})) {
      const auto cluster = places.find("");
      const bool is_used = cluster != places.end() && cluster->second.paths.contains(path);
      if (!is_used) lines.push_back(printable(path) + ": unused");
    }
  }
  remarks.push_back(fmt::format("  {}{}", head, lines.empty() ? ": all of it was used" : ""));
  for (std::size_t index = 0; index < lines.size(); ++index) {
    if (index == kLinesMax) {
      remarks.push_back(fmt::format("    and {} more", lines.size() - index));
      break;
    }
    remarks.push_back("    " + lines[index]);
  }
}

std::string text_of(const seeing::UsesQuestion& question, Contract contract) {
  return printable(fmt::format("{} {}{}{}", recorder::name_of(contract), question.namespace_,
                               question.namespace_.empty() ? "" : "/",
                               shown_name(contract, question.name)));
}

void tell_found(const seeing::UsesQuestion& question, const FoundUses& found,
                std::vector<std::string>& remarks) {
  remarks.push_back(fmt::format("What {} has used, by {} turns of it.",
                                text_of(question, found.contract), found.turns));
  if (found.read.since)
    remarks.push_back(fmt::format("Records go back to {}.", to_rfc3339(*found.read.since)));
  if (found.read.lost_records > 0)
    remarks.push_back(fmt::format("{} records were lost.", found.read.lost_records));
  for (const recorder::Shortened& one : found.read.shortened)
    remarks.push_back(in_words(one));
  for (const std::string& problem : found.read.problems)
    remarks.push_back(printable(problem));
  if (found.user.empty()) {
    remarks.emplace_back(found.contract == Contract::Operator
                             ? "It asked as the user who runs it: no binding is printed."
                             : "It asked as hangar itself: no binding is printed. It could be "
                               "given a ServiceAccount of its own.");
  } else if (const std::optional<ServiceAccount> account = account_of(found.user)) {
    remarks.push_back(
        fmt::format("It asked as ServiceAccount {}/{}.", account->namespace_, account->name));
  } else {
    remarks.push_back(
        fmt::format("It asked as {}, which is not a ServiceAccount: no binding is printed.",
                    printable(found.user)));
  }
  for (const std::string& user : found.earlier_users)
    remarks.push_back(
        fmt::format("Before, it asked as {}.", user.empty() ? "hangar itself" : printable(user)));
  if (found.uses_left_out > 0) {
    remarks.push_back(fmt::format("{} requests are omitted: there were too many different ones.",
                                  found.uses_left_out));
  }
}

void tell_sharers(const FoundUses& found, std::vector<std::string>& remarks) {
  if (found.sharers.empty() && found.sharers_withheld == 0) return;
  std::vector<std::string> names;
  for (const kube::ObjectKey& one : found.sharers)
    names.push_back(printable(one.to_string()));
  if (found.sharers_withheld > 0)
    names.push_back(fmt::format("{} that you may not see", found.sharers_withheld));
  remarks.push_back(
      fmt::format("Other guests ask as the same user; the rights that they use are not listed: {}.",
                  fmt::join(names, ", ")));
}

void tell_refused(const FoundUses& found, std::vector<std::string>& remarks) {
  bool is_first = true;
  for (const Use& use : found.uses) {
    if (use.refused == 0) continue;
    if (std::exchange(is_first, false)) remarks.emplace_back("Refused:");
    remarks.push_back(fmt::format("  {}: {} of {} requests, last at {}{}",
                                  right_in_words(use.right), use.refused, use.refused + use.count,
                                  to_rfc3339(use.last),
                                  use.count > 0 ? "" : "; not in these roles"));
  }
}

std::string name_of_roles(const seeing::UsesQuestion& question, const RoleOptions& options) {
  if (!options.role.empty()) return options.role;
  std::string name = fmt::format("hangar:used:{}:{}", question.namespace_, question.name);
  std::ranges::replace(name, '/', ':');
  return name;
}

}  // namespace

std::set<std::string> namespaces_of(const FoundUses& found) {
  std::set<std::string> namespaces;
  for (const Use& use : found.uses)
    if (is_plain(use.right) && !use.right.namespace_.empty())
      namespaces.insert(use.right.namespace_);
  if (const std::optional<ServiceAccount> account = account_of(found.user)) {
    namespaces.insert(account->namespace_);
  }
  return namespaces;
}

UsedRights used_rights(const seeing::UsesQuestion& question, const FoundUses& found,
                       const HeldRights& held, const RoleOptions& options) {
  UsedRights used;
  std::vector<std::string>& remarks = used.remarks;
  tell_found(question, found, remarks);
  const Places places = Gatherer(found, options).gather(remarks);
  const std::string name = name_of_roles(question, options);
  for (const auto& [namespace_, needs] : places)
    add_manifests(namespace_, needs, name, found.user, used.manifests);
  if (places.empty()) remarks.emplace_back("It has used nothing that a role would have to allow.");
  tell_refused(found, remarks);
  tell_sharers(found, remarks);
  const auto is_other = [&name](const HeldBinding& binding) { return binding.name != name; };
  if (std::ranges::any_of(held.bindings, is_other)) {
    remarks.emplace_back("What it has, until these bindings are deleted, since rights add up:");
  }
  for (const HeldBinding& binding : held.bindings | std::views::filter(is_other))
    tell_held(binding, places, remarks);
  for (const std::string& unread : held.unread)
    remarks.push_back(fmt::format("What else it has was not read: {}", printable(unread)));
  return used;
}

}  // namespace hangar::commands
