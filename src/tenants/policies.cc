#include "tenants/policies.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "kube/cache/cache.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "tenants/rules.h"
#include "tenants/tenant_policy.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::tenants {

namespace {

// One 404 may come from an API server that has not read its CRDs yet; a second one, two seconds
// later, has to confirm it.
constexpr int kNotFoundConfirmed = 2;

// Namespaces whose rules are remembered.
constexpr std::size_t kRulesKeptMax = 10'000;

}  // namespace

Policies::Policies(Parts parts)
    : parts_(std::move(parts)),
      count_(std::make_shared<std::atomic<std::size_t>>(0)),
      is_readable_(std::make_shared<std::atomic<bool>>(false)) {
  parts_.metrics.gauge_read("hangar_tenant_policies", "TenantPolicies that are known",
                            [count = count_] { return static_cast<double>(count->load()); });
  parts_.metrics.gauge_read(
      "hangar_tenant_policies_readable",
      "1 while TenantPolicies are followed; 0: the host may not, or they are not installed",
      [readable = is_readable_] { return readable->load() ? 1.0 : 0.0; });
}

Policies::~Policies() = default;

void Policies::start() {
  if (policies_) return;
  policies_ =
      parts_.cache.subscribe({.resource = tenant_policy_resource()},
                             {.on_delta = [this](const kube::Delta& delta) { on_policy(delta); },
                              .on_synced =
                                  [this] {
                                    are_known_ = true;
                                    is_readable_->store(true);
                                    follow_namespaces();
                                    changed({});
                                  },
                              .on_progress =
                                  [this](std::string_view /*version*/, bool /*is_list*/) {
                                    is_readable_->store(true);
                                    has_warned_ = false;
                                  },
                              .on_failed = [this](const Error& error) { on_failed(error); },
                              .on_gone = [this] { is_readable_->store(false); }});
}

void Policies::stop() {
  namespaces_.reset();
  policies_.reset();
}

std::shared_ptr<const Rules> Policies::rules_of(const std::string& namespace_name) const {
  if (const auto known = rules_.find(namespace_name); known != rules_.end()) return known->second;
  const kube::ObjectPtr object =
      namespaces_ ? namespaces_->get({.namespace_ = {}, .name = namespace_name}) : nullptr;
  auto rules = std::make_shared<const Rules>(set_.rules_of(object.get()));
  // The rules of a namespace that is not known yet are not cached.
  if (object || !set_.needs_labels()) {
    if (rules_.size() >= kRulesKeptMax) rules_.clear();
    rules_.emplace(namespace_name, rules);
  }
  return rules;
}

std::vector<std::string> Policies::known_namespaces() const {
  std::vector<std::string> names;
  if (!namespaces_) return names;
  for (const kube::ObjectPtr& object : namespaces_->list())
    names.push_back(object->key().name);
  return names;
}

void Policies::on_policy(const kube::Delta& delta) {
  const std::string& name = delta.object->key().name;
  if (delta.type == kube::Delta::Type::Deleted) {
    set_.remove(name);
  } else {
    TenantPolicy policy = parse_tenant_policy(delta.object->to_value());
    if (!policy.problem.empty()) {
      parts_.log.warning("a TenantPolicy is invalid: nothing may run in its namespaces",
                         {{"policy", name}, {"problem", policy.problem}});
    }
    set_.put(std::move(policy));
  }
  count_->store(set_.size());
  is_readable_->store(true);
  rules_.clear();
  if (!are_known_) return;  // on_synced reports all policies.
  follow_namespaces();
  tell_soon();
}

void Policies::on_failed(const Error& error) {
  is_readable_->store(false);
  const bool is_missing = error.kind() == ErrorKind::NotFound;
  not_found_count_ = is_missing ? not_found_count_ + 1 : 0;
  const bool is_final = error.kind() == ErrorKind::Denied || not_found_count_ >= kNotFoundConfirmed;
  if (!is_final) return;
  if (!std::exchange(has_warned_, true)) {
    parts_.log.warning(set_.size() > 0
                           ? "TenantPolicies cannot be read any more: those known last count"
                           : "TenantPolicies cannot be read: only the host's own settings count",
                       {{"error", error.message()}});
  }
  if (!std::exchange(are_known_, true)) changed({});
}

void Policies::follow_namespaces() {
  if (namespaces_ || !set_.needs_labels()) return;
  are_namespaces_known_ = false;
  namespaces_ = parts_.cache.subscribe(
      {.resource = kube::namespace_resource(), .detail = kube::Detail::Metadata},
      {.on_delta =
           [this](const kube::Delta& delta) {
             if (delta.type == kube::Delta::Type::Modified &&
                 delta.object->labels() == delta.previous->labels()) {
               return;
             }
             rules_.erase(delta.object->key().name);
             if (are_namespaces_known_) changed(delta.object->key().name);
           },
       .on_synced =
           [this] {
             are_namespaces_known_ = true;
             rules_.clear();
             changed({});
           },
       .on_failed = [this](const Error& error) { on_namespaces_failed(error); }});
}

void Policies::on_namespaces_failed(const Error& error) {
  if (error.kind() != ErrorKind::Denied) return;
  if (!std::exchange(has_warned_of_namespaces_, true)) {
    parts_.log.warning(
        "namespaces cannot be read: policies that select by labels count for all of those that are "
        "not known",
        {{"error", error.message()}});
  }
  if (!std::exchange(are_namespaces_known_, true)) changed({});
}

// Reports several changes of policies together.
void Policies::tell_soon() {
  if (std::exchange(will_tell_, true)) return;
  parts_.loop.post([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    will_tell_ = false;
    changed({});
  });
}

void Policies::changed(const std::string& namespace_name) {
  if (!is_settled()) return;
  has_settled_ = true;
  for (const Listener& listener : listeners_)
    listener(namespace_name);
}

}  // namespace hangar::tenants
