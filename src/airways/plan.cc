#include "airways/plan.h"

#include "airways/internal/digest.h"
#include "airways/refusals.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <unordered_set>
#include <utility>

namespace hangar::airways {

namespace {

// Go prints a status for every typed object: `{}`, `{"loadBalancer":{}}` or, of a CRD,
// `{"acceptedNames":{"plural":"","kind":""},"conditions":null}`. Such a status applies nothing.
bool is_blank(const json::Value& value) {
  if (value.is_null()) return true;
  if (const json::String* text = value.if_string()) return text->empty();
  const json::Object* object = value.if_object();
  return object != nullptr &&
         std::ranges::all_of(*object, [](const auto& member) { return is_blank(member.value()); });
}

void append_member(const json::Value& object, std::string_view key, std::string& text) {
  const json::Value* member = json::find(object, {key});
  text += key;
  text += member == nullptr ? '-' : '=';
  if (member != nullptr) internal::append_canonical(*member, text);
}

// For a map that is merged by key: appends the keys that we apply.
void append_common_keys(const json::Value& desired, const json::Value& live,
                        std::string_view member, std::string& text) {
  const json::Object* wanted = json::object_at(desired, {"metadata", member});
  if (wanted == nullptr) return;
  const json::Value* found = json::find(live, {"metadata", member});
  const json::Value nothing;
  std::vector<std::string_view> keys;
  for (const auto& entry : *wanted)
    keys.emplace_back(entry.key());
  std::ranges::sort(keys);
  for (const std::string_view key : keys) {
    append_member(found == nullptr ? nothing : *found, key, text);
  }
}

// For a list that is merged: appends, for each entry that we apply, the live one that `is_same`
// finds.
void append_common_entries(const json::Value& desired, const json::Value& live,
                           std::string_view member, std::string& text, auto&& is_same) {
  const json::Array* wanted = json::array_at(desired, {"metadata", member});
  if (wanted == nullptr) return;
  const json::Array* found = json::array_at(live, {"metadata", member});
  for (const json::Value& entry : *wanted) {
    text += ';';
    if (found == nullptr) continue;
    const auto same = std::ranges::find_if(
        *found, [&](const json::Value& candidate) { return is_same(entry, candidate); });
    if (same != found->end()) internal::append_canonical(*same, text);
  }
}

// Covers the part of `live` that an apply of `desired` could change, as plan.h says.
Digest live_digest_of(const json::Value& desired, const json::Value& live) {
  std::string text;
  if (const json::Object* metadata = json::object_at(desired, {"metadata"})) {
    append_common_keys(desired, live, "labels", text);
    append_common_keys(desired, live, "annotations", text);
    // Also if we do not apply it: somebody may have written it in the name of our manager while
    // there was no policy. An apply takes it away from the manager.
    text += kube::annotation_of(live, kModeAnnotation);
    append_common_entries(desired, live, "ownerReferences", text,
                          [](const json::Value& left, const json::Value& right) {
                            return json::string_at(left, {"uid"}) ==
                                   json::string_at(right, {"uid"});
                          });
    append_common_entries(desired, live, "finalizers", text, json::equal);
    const json::Value* live_metadata = json::find(live, {"metadata"});
    for (const auto& member : *metadata) {
      const std::string_view key = member.key();
      if (key == "labels" || key == "annotations" || key == "ownerReferences" ||
          key == "finalizers" || live_metadata == nullptr) {
        continue;
      }
      append_member(*live_metadata, key, text);
    }
  }
  if (const json::Value* status = json::find(desired, {"status"});
      status != nullptr && !is_blank(*status)) {
    append_member(live, "status", text);
  }
  if (const json::Object* object = live.if_object()) {
    std::vector<std::string_view> keys;
    for (const auto& member : *object)
      keys.emplace_back(member.key());
    std::ranges::sort(keys);
    for (const std::string_view key : keys) {
      if (key != "metadata" && key != "status") append_member(live, key, text);
    }
  }
  return internal::digest_of(text);
}

Digest desired_digest_of(const json::Value& desired) {
  std::string text;
  internal::append_canonical(desired, text);
  return internal::digest_of(text);
}

}  // namespace

Applied applied_of(const json::Value& desired, const json::Value& answer) {
  return {
      .desired_digest = desired_digest_of(desired),
      .live_digest = live_digest_of(desired, answer),
      .uid = std::string(json::string_at(answer, {"metadata", "uid"})),
      .resource_version = std::string(json::string_at(answer, {"metadata", "resourceVersion"}))};
}

ApplyNeed apply_need(const json::Value& desired, const kube::Object* live, const Applied* last) {
  if (live == nullptr) return ApplyNeed::Missing;
  if (live->is_being_deleted()) return ApplyNeed::Terminating;
  if (last == nullptr) return ApplyNeed::NeverApplied;
  if (desired_digest_of(desired) != last->desired_digest) return ApplyNeed::DesiredChanged;
  if (live->uid() != last->uid) return ApplyNeed::LiveChanged;
  // The cache shows the result of our last apply, or a state from before it.
  if (live->resource_version() == last->resource_version ||
      is_older(live->resource_version(), last->resource_version)) {
    return ApplyNeed::None;
  }
  return live_digest_of(desired, live->to_value()) == last->live_digest ? ApplyNeed::None
                                                                        : ApplyNeed::LiveChanged;
}

bool is_news(const kube::Object* child, const Applied* applied) {
  if (applied == nullptr || child == nullptr || child->uid() != applied->uid) return true;
  const std::string_view version = child->resource_version();
  return version != applied->resource_version && !is_older(version, applied->resource_version);
}

bool is_from_before(const kube::Object& live, const Applied* applied) {
  return applied != nullptr && (applied->uid != live.uid() ||
                                is_older(live.resource_version(), applied->resource_version));
}

std::vector<ApplyStep> rehearsal_of(const StagePlan& plan, Rehearse rehearse) {
  if (rehearse == Rehearse::All) return plan.apply;
  std::vector<ApplyStep> steps;
  if (rehearse == Rehearse::Nothing || plan.apply.size() <= 1) return steps;
  for (const ApplyStep& step : plan.apply) {
    if (step.need == ApplyNeed::Missing || step.need == ApplyNeed::DesiredChanged) {
      steps.push_back(step);
    }
  }
  return steps;
}

Result<StagePlan> plan_stage(const Stage& stage, std::span<const LiveFact> facts,
                             const Release& release, Adoption adoption) {
  StagePlan plan;
  Refusals refused;
  for (std::size_t i = 0; i < stage.size(); ++i) {
    const LiveFact fact = i < facts.size() ? facts[i] : LiveFact{};
    const ApplyNeed need = apply_need(stage[i], fact.live.get(), fact.applied);
    if (need == ApplyNeed::None) continue;
    if (fact.live != nullptr) {
      if (Result<> may = may_take_over(fact.live->to_value(), release, adoption); !may) {
        refused.add(fmt::format("{}: failed to validate resource release: {}",
                                canonical_name(stage[i]), may.error().message()));
        continue;
      }
    }
    if (need == ApplyNeed::Terminating) {
      plan.terminating.push_back(i);
    } else {
      plan.apply.push_back({.index = i, .need = need});
    }
  }
  if (!refused.is_empty()) return fail(ErrorKind::InvalidInput, refused.to_string());
  return plan;
}

std::vector<std::vector<PruneStep>> plan_prune(const Stages& previous, const Stages& next,
                                               const PruneOptions& options) {
  // Resources that stay, or are planned already: an inventory may list a resource several times.
  std::unordered_set<ResourceRef> settled;
  for (const Stage& stage : next) {
    for (const json::Value& resource : stage)
      settled.insert(ref_of(resource));
  }
  std::vector<std::vector<PruneStep>> plan;
  for (const Stage& stage : previous | std::views::reverse) {
    std::vector<PruneStep> steps;
    for (const json::Value& resource : stage) {
      ResourceRef ref = ref_of(resource);
      if (!settled.insert(ref).second) continue;
      const bool orphan =
          (is_crd(ref.kind) && !options.crds) || (is_namespace(ref.kind) && !options.namespaces);
      steps.push_back({.ref = std::move(ref),
                       .gvk = kube::make_gvk(json::string_at(resource, {"apiVersion"}),
                                             json::string_at(resource, {"kind"})),
                       .orphan = orphan});
    }
    if (!steps.empty()) plan.push_back(std::move(steps));
  }
  return plan;
}

PruneAction prune_action(const PruneStep& step, const json::Value* live, const Release& release) {
  if (live == nullptr || !release.owns(*live)) return PruneAction::Leave;
  const bool is_being_deleted = !json::string_at(*live, {"metadata", "deletionTimestamp"}).empty();
  if (step.orphan) return is_being_deleted ? PruneAction::Leave : PruneAction::Orphan;
  return is_being_deleted ? PruneAction::Wait : PruneAction::Delete;
}

}  // namespace hangar::airways
