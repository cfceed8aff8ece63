#include "tenants/policies.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "tenants/rules.h"
#include "tenants/tenant_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::tenants {

namespace {

// One 404 may come from an API server that has not read its CRDs yet; a second one, two seconds
// later, has to confirm it.
constexpr int kNotFoundConfirmed = 2;

// Namespaces whose rules are remembered.
constexpr std::size_t kRulesKeptMax = 10'000;

// The group of CustomResourceDefinitions. A server that does not list it has not read its groups
// yet, or does not tell all of them.
constexpr std::string_view kDefinitionsGroup = "apiextensions.k8s.io";

bool has_entry(const json::Array& entries, std::string_view name) {
  return std::ranges::any_of(entries, [name](const json::Value& entry) {
    return json::string_at(entry, {"name"}) == name;
  });
}

// Whether discovery says that the kind does not exist. Only a whole document without it says so. A
// 404 is an error here, too: whatever answers 404 to the list may do so for every path.
io::Task<Result<bool>> is_kind_gone(kube::Client client, std::stop_token stop) {
  const kube::Resource kind = tenant_policy_resource();
  const json::Value groups = HANGAR_CO_TRY(co_await client.get_path("/apis", stop));
  const json::Array* const group_entries = json::array_at(groups, {"groups"});
  if (json::string_at(groups, {"kind"}) != "APIGroupList" || group_entries == nullptr ||
      !has_entry(*group_entries, kDefinitionsGroup)) {
    co_return fail(ErrorKind::InvalidInput, "/apis does not list the groups of the server");
  }
  if (!has_entry(*group_entries, kind.group)) co_return true;

  const std::string path = fmt::format("/apis/{}/{}", kind.group, kind.version);
  const json::Value resources = HANGAR_CO_TRY(co_await client.get_path(path, stop));
  const json::Array* const resource_entries = json::array_at(resources, {"resources"});
  if (json::string_at(resources, {"kind"}) != "APIResourceList" || resource_entries == nullptr) {
    co_return fail(ErrorKind::InvalidInput, path + " does not list the resources of the group");
  }
  co_return !has_entry(*resource_entries, kind.plural);
}

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

Policies::~Policies() {
  stop();
}

void Policies::start() {
  if (policies_) return;
  policies_ = parts_.cache.subscribe(
      {.resource = tenant_policy_resource()},
      {.on_delta = [this](const kube::Delta& delta) { on_policy(delta); },
       .on_synced =
           [this] {
             are_known_ = true;
             is_readable_->store(true);
             follow_namespaces();
             changed({});
           },
       .on_list = [this] { on_list(); },
       .on_progress = [this](std::string_view /*version*/, bool /*is_list*/) { on_progress(); },
       .on_failed = [this](const Error& error) { on_failed(error); },
       .on_gone = [this] { on_lost(); }});
}

void Policies::stop() {
  asking_.request_stop();
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
    if (is_holding_) {
      held_.insert(name);
      return;
    }
    set_.remove(name);
  } else {
    TenantPolicy policy = parse_tenant_policy(delta.object->to_value());
    if (!policy.problem.empty()) {
      parts_.log.warning("a TenantPolicy is invalid: nothing may run in its namespaces",
                         {{"policy", name}, {"problem", policy.problem}});
    }
    set_.put(std::move(policy));
    held_.erase(name);
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
  if (is_missing && is_holding_) ask_for_kind();
}

// The cache takes 404s for proof that the kind is gone, and reports all policies as deleted.
void Policies::on_lost() {
  is_readable_->store(false);
  if (set_.size() == 0) return;
  is_holding_ = true;
  ask_for_kind();
}

void Policies::on_list() {
  is_holding_ = false;
  asking_.request_stop();
}

void Policies::on_progress() {
  is_readable_->store(true);
  has_warned_ = false;
  // Those that the list did not contain were deleted meanwhile.
  drop_held();
}

void Policies::ask_for_kind() {
  if (std::exchange(is_asking_, true)) return;
  asking_ = std::stop_source();
  parts_.loop.spawn(ask(*this, alive_, parts_.client, asking_.get_token()));
}

io::Task<void> Policies::ask(Policies& self, std::weak_ptr<int> alive, kube::Client client,
                             std::stop_token stop) {
  const Result<bool> is_gone = co_await is_kind_gone(std::move(client), stop);
  if (alive.expired()) co_return;
  self.is_asking_ = false;
  // Without an answer the policies stay: the next failure of the list asks again.
  if (!stop.stop_requested() && is_gone && *is_gone) self.on_kind_gone();
}

void Policies::on_kind_gone() {
  parts_.log.warning(
      "the API server does not serve TenantPolicies any more: only the host's own settings count");
  is_holding_ = false;  // Deletions that the cache has yet to deliver count.
  drop_held();
}

void Policies::drop_held() {
  if (held_.empty()) return;
  for (const std::string& name : std::exchange(held_, {}))
    set_.remove(name);
  count_->store(set_.size());
  rules_.clear();
  tell_soon();
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
