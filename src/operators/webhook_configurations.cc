#include "operators/webhook_configurations.h"

#include "io/loop.h"
#include "kube/client.h"
#include "operators/limits.h"
#include "operators/webhook_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace hangar::operators {

namespace {

constexpr std::string_view kWebhooksFieldManager = "hangar-operators";

}  // namespace

WebhookConfigurations::WebhookConfigurations(
    const reconcile::Platform& platform, const admission::Webhooks& webhooks,
    std::function<void(const kube::ObjectKey& key)> changed)
    : platform_(platform),
      webhooks_(webhooks),
      changed_(std::move(changed)),
      watched_(platform.cache, {},
               {.on_object = [this](const reconcile::SingleObject&, const kube::Delta* delta,
                                    const std::vector<kube::ObjectKey>& holders) {
                 if (delta == nullptr) return;  // Not watched any more: they are looked at anyway.
                 for (const kube::ObjectKey& key : holders) {
                   const auto found = kept_.find(key);
                   if (found == kept_.end()) continue;
                   found->second.is_due = true;
                   changed_(key);
                 }
               }}) {}

io::Task<void> WebhookConfigurations::keep(const Operator& spec, std::stop_token stop) {
  if (spec.webhooks.empty()) {
    release(spec.key);
    co_return;
  }
  Kept& kept = kept_[spec.key];
  if (!webhooks_.is_on()) {
    kept.is_due = false;
    kept.problem = Error(ErrorKind::InvalidInput,
                         "this host serves no webhooks: its webhook-bind-address is not set");
    co_return;
  }
  const bool is_same = kept.uid == spec.uid && kept.generation == spec.generation;
  if (!is_same) watch(spec);
  if (is_same && !kept.is_due && (!kept.again || io::Loop::now() < *kept.again)) co_return;
  kept.uid = spec.uid;
  kept.generation = spec.generation;
  kept.is_due = false;  // Changes from here on are looked at in another call.
  std::optional<Error> problem;
  std::set<std::string, std::less<>> conversions;
  bool are_all_read = true;
  for (const WebhookSource& source : spec.webhooks) {
    Result<std::vector<std::string>> paths = co_await keep_one(spec, source, stop);
    if (paths && source.kind == WebhookKind::Conversion) {
      conversions.insert(paths->begin(), paths->end());
    } else if (!paths) {
      are_all_read = are_all_read && paths.error().kind() != ErrorKind::Unavailable;
      if (problem) continue;
      problem = std::move(paths).error().in(fmt::format(
          "{} {}, as ServiceAccount {}", name_of(source.kind), source.name, spec.service_account));
    }
  }
  // It may have been released meanwhile.
  const auto found = kept_.find(spec.key);
  if (found == kept_.end()) co_return;
  if (problem && problem->kind() == ErrorKind::Cancelled) {
    found->second.is_due = true;
    co_return;
  }
  // What could not be read now is as it was.
  if (!are_all_read) conversions.merge(found->second.conversions);
  found->second.conversions = std::move(conversions);
  const bool is_watched = std::ranges::all_of(spec.webhooks, [&](const WebhookSource& source) {
    return !watched_
                .hold(spec.key,
                      {.resource = resource_of(source.kind), .key = {.name = source.name}})
                .last_error();
  });
  found->second.again.reset();
  if (problem || !is_watched) found->second.again = io::Loop::now() + limits::kWebhooksRecheck;
  found->second.problem = std::move(problem);
}

void WebhookConfigurations::watch(const Operator& spec) {
  watched_.begin(spec.key);
  for (const WebhookSource& source : spec.webhooks)
    watched_.hold(spec.key, {.resource = resource_of(source.kind), .key = {.name = source.name}});
  watched_.end(spec.key);
}

void WebhookConfigurations::release(const kube::ObjectKey& key) {
  if (kept_.erase(key) > 0) watched_.release(key);
}

void WebhookConfigurations::clear() {
  kept_.clear();
  watched_.clear();
}

void WebhookConfigurations::on_address_change() {
  for (auto& [key, kept] : kept_) {
    kept.is_due = true;
    changed_(key);
  }
}

std::optional<Error> WebhookConfigurations::problem(const kube::ObjectKey& key) const {
  const auto found = kept_.find(key);
  return found == kept_.end() ? std::nullopt : found->second.problem;
}

std::optional<Duration> WebhookConfigurations::again_in(const kube::ObjectKey& key,
                                                        Instant now) const {
  const auto found = kept_.find(key);
  if (found == kept_.end()) return std::nullopt;
  if (found->second.is_due) return Duration::zero();
  if (!found->second.again) return std::nullopt;
  return std::max<Duration>(Duration::zero(), *found->second.again - now);
}

bool WebhookConfigurations::converts_at(const kube::ObjectKey& key, std::string_view path) const {
  const auto found = kept_.find(key);
  return found != kept_.end() && found->second.conversions.contains(path);
}

io::Task<Result<std::vector<std::string>>> WebhookConfigurations::keep_one(const Operator& spec,
                                                                           WebhookSource source,
                                                                           std::stop_token stop) {
  const kube::Identity identity = kube::service_account(spec.key.namespace_, spec.service_account);
  const kube::Client client = platform_.client.as(identity);
  const kube::Resource resource = resource_of(source.kind);
  const json::Value object =
      HANGAR_CO_TRY(co_await client.get(resource, {.name = source.name}, stop));
  if (!webhooks_.leader_client_config("/")) {
    co_return fail(ErrorKind::Unavailable, "this host has no certificate for its webhooks yet");
  }
  Pointing pointing =
      HANGAR_CO_TRY(point_at(spec.key, source.kind, object, [this](std::string_view path) {
        return webhooks_.leader_client_config(path).value_or(json::Value());
      }));
  if (pointing.patch.empty()) co_return std::move(pointing.paths);
  const auto found = kept_.find(spec.key);
  if (found == kept_.end()) {
    co_return fail(ErrorKind::Cancelled, "the operator no longer answers its webhooks");
  }
  const auto written = found->second.written.find(source);
  if (written != found->second.written.end() &&
      io::Loop::now() < written->second + limits::kWebhooksRewrite) {
    co_return fail(ErrorKind::Conflict,
                   "someone else has changed it again: it must be left to hangar");
  }
  HANGAR_CO_TRY(co_await client.patch(resource, {.name = source.name}, kube::PatchType::Json,
                                      std::move(pointing.patch),
                                      {.field_manager = std::string(kWebhooksFieldManager)}, stop));
  if (const auto kept = kept_.find(spec.key); kept != kept_.end()) {
    kept->second.written[source] = io::Loop::now();
  }
  co_return std::move(pointing.paths);
}

}  // namespace hangar::operators
