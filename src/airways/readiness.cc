#include "airways/readiness.h"

#include "airways/airway.h"
#include "airways/conditions.h"
#include "airways/resource_ref.h"
#include "base/digest.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/readiness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

using reconcile::job_readiness;
using reconcile::meets;
using reconcile::not_ready;
using reconcile::ready;
using reconcile::workload_readiness;

constexpr std::string_view kWholeGroup = "_";

Readiness core_readiness(std::string_view kind, const json::Value& live,
                         const ReadinessFacts& facts) {
  if (kind == "Namespace") {
    const std::string_view phase = json::string_at(live, {"status", "phase"});
    return phase == "Active" ? ready() : not_ready(fmt::format("phase is \"{}\"", phase));
  }
  if (kind == "Pod") return meets(live, {"Initialized", "ContainersReady", "Ready"});
  if (kind == "Service" && !facts.has_endpoint_slice) return not_ready("no endpoint slice exists");
  return ready();
}

bool belongs_to_airway(const json::Value& live) {
  return std::ranges::any_of(kube::owners_of(live), [](const kube::OwnerReference& owner) {
    return owner.api_version == kAirwayApiVersion && owner.kind == kAirwayKind;
  });
}

kube::GroupKind parse_group_kind(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {.group = {}, .kind = std::string(text)};
  return {.group = std::string(text.substr(dot + 1)), .kind = std::string(text.substr(0, dot))};
}

std::shared_ptr<const LuaScript> make_script(std::string_view name, const json::Value& config_map,
                                             std::string_view text) {
  auto script = std::make_shared<LuaScript>(LuaScript{
      .name = std::string(name),
      .source = fmt::format("{}/{}", json::string_at(config_map, {"metadata", "namespace"}),
                            json::string_at(config_map, {"metadata", "name"})),
      .text = std::string(text)});
  script->digest =
      sha256_hex(fmt::format("{}\n{}\n{}", script->name, script->source, script->text));
  return script;
}

std::vector<std::string> split_words(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  std::vector<std::string> words;
  for (std::size_t begin = text.find_first_not_of(kSpaces); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpaces, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kSpaces, end);
  }
  return words;
}

// std::nullopt for kinds that users' rules are for.
std::optional<Readiness> built_in_readiness(const json::Value& live, const ReadinessFacts& facts) {
  if (!json::string_at(live, {"metadata", "deletionTimestamp"}).empty()) {
    return not_ready("it is being deleted");
  }
  const kube::GroupKind kind = ref_of(live).kind;
  if (kind.group.empty() &&
      (kind.kind == "Namespace" || kind.kind == "Pod" || kind.kind == "Service")) {
    return core_readiness(kind.kind, live, facts);
  }
  if (kind.group == "apps" && (kind.kind == "Deployment" || kind.kind == "ReplicaSet" ||
                               kind.kind == "StatefulSet" || kind.kind == "DaemonSet")) {
    return workload_readiness(kind.kind, live);
  }
  if (kind == kube::GroupKind{"batch", "Job"}) return job_readiness(live);
  if (is_crd(kind)) {
    return meets(live, {"Established"});
  }
  const bool is_yoke = kind.group == "yoke.cd" && (kind.kind == "Airway" || kind.kind == "Flight" ||
                                                   kind.kind == "ClusterFlight");
  if (is_yoke || belongs_to_airway(live)) return meets(live, {kReady});
  return std::nullopt;
}

}  // namespace

CustomReadiness::CustomReadiness(const std::vector<json::Value>& config_maps) {
  for (const json::Value& config_map : config_maps) {
    const std::string_view language = kube::label_of(config_map, kLabel);
    if (language != "lua" && language != "conditions") continue;
    const json::Object* data = json::object_at(config_map, {"data"});
    if (data == nullptr) continue;
    for (const auto& [key, value] : *data) {
      if (!value.is_string()) continue;
      Rule rule;
      if (language == "lua") {
        rule.script = make_script(key, config_map, value.get_string());
      } else {
        rule.conditions = split_words(value.get_string());
      }
      rules_[parse_group_kind(key)] = std::move(rule);
    }
  }
}

const CustomReadiness::Rule* CustomReadiness::find(const kube::GroupKind& kind) const {
  auto found = rules_.find(kind);
  if (found == rules_.end()) found = rules_.find({kind.group, std::string(kWholeGroup)});
  return found == rules_.end() ? nullptr : &found->second;
}

bool CustomReadiness::has_scripts() const {
  return std::ranges::any_of(rules_,
                             [](const auto& entry) { return entry.second.script != nullptr; });
}

bool needs_endpoint_slices(const json::Value& object) {
  return ref_of(object).kind == kube::GroupKind{"", "Service"};
}

std::shared_ptr<const LuaScript> deciding_script(const json::Value& live,
                                                 const CustomReadiness& custom) {
  if (built_in_readiness(live, {})) return nullptr;
  const CustomReadiness::Rule* const rule = custom.find(ref_of(live).kind);
  return rule == nullptr ? nullptr : rule->script;
}

Readiness readiness_of(const json::Value& live, const ReadinessFacts& facts) {
  if (std::optional<Readiness> built_in = built_in_readiness(live, facts)) {
    return *std::move(built_in);
  }
  const CustomReadiness::Rule* const rule =
      facts.custom == nullptr ? nullptr : facts.custom->find(ref_of(live).kind);
  if (rule == nullptr) return ready();
  if (rule->script != nullptr) {
    // The rules may have changed since the script was run.
    return facts.scripted.value_or(not_ready("its rule in Lua was not run yet"));
  }
  const std::vector<std::string_view> types(rule->conditions.begin(), rule->conditions.end());
  return meets(live, types);
}

}  // namespace hangar::airways
