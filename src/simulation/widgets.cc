#include "simulation/widgets.h"

#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "reconcile/custom_resource.h"
#include "reconcile/event_log.h"
#include "reconcile/platform.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::simulation {

namespace {

using Outcome = reconcile::Outcome;

std::string child_name(std::string_view widget, std::int64_t index) {
  return fmt::format("{}-{}", widget, index);
}

// "web-3" is the third of "web".
std::optional<std::pair<std::string, std::int64_t>> widget_of(std::string_view child) {
  const std::size_t dash = child.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  std::int64_t index = 0;
  const std::string_view digits = child.substr(dash + 1);
  if (std::from_chars(digits.data(), digits.data() + digits.size(), index).ptr !=
      digits.data() + digits.size()) {
    return std::nullopt;
  }
  return std::pair(std::string(child.substr(0, dash)), index);
}

json::Value child_of(const json::Value& widget, std::int64_t index) {
  const kube::ObjectKey key = kube::key_of(widget);
  const json::Value* const value = json::find(widget, {"spec", "value"});
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata",
       json::Object{{"name", child_name(key.name, index)},
                    {"namespace", key.namespace_},
                    {"labels", json::Object{{std::string(kWidgetLabel), key.name}}},
                    {"ownerReferences",
                     json::Array{json::Object{
                         {"apiVersion", "sim.example.com/v1"},
                         {"kind", "Widget"},
                         {"name", key.name},
                         {"uid", json::String(json::string_at(widget, {"metadata", "uid"}))},
                         {"controller", true}}}}}},
      {"data", json::Object{{"value", value == nullptr ? json::Value("") : *value}}}};
}

}  // namespace

kube::Resource widget_resource() {
  return {.group = "sim.example.com",
          .version = "v1",
          .plural = "widgets",
          .kind = "Widget",
          .namespaced = true};
}

std::string_view widget_definition() {
  return R"({
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "widgets.sim.example.com"},
  "spec": {"group": "sim.example.com", "scope": "Namespaced",
    "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
    "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
      "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})";
}

Widgets::Widgets(const reconcile::Platform& platform)
    : platform_(platform),
      shell_(platform, {.kind = widget_resource(),
                        .name = "widget",
                        .field_manager = "hangar-widgets",
                        .log = platform.log,
                        .concurrency = 4,
                        .finalizer = std::string(kWidgetFinalizer),
                        .reconcile =
                            [this](kube::ObjectPtr widget, std::stop_token stop) {
                              return reconcile(std::move(widget), std::move(stop));
                            },
                        .finalize =
                            [this](kube::ObjectPtr widget, std::stop_token stop) {
                              return finalize(std::move(widget), std::move(stop));
                            },
                        .forget = [](kube::ObjectKey) -> io::Task<void> { co_return; }}) {}

void Widgets::start() {
  children_ = platform_.cache.subscribe(
      {.resource = kube::config_map_resource(), .label_selector = std::string(kWidgetLabel)},
      {.on_delta = [this](const kube::Delta& delta) {
        if (const auto widget = widget_of(delta.object->key().name)) {
          shell_.enqueue({delta.object->key().namespace_, widget->first});
        }
      }});
  shell_.start();
}

io::Task<void> Widgets::stop() {
  children_.reset();
  co_await shell_.stop();
}

reconcile::CustomResource::OutcomeTask Widgets::reconcile(kube::ObjectPtr widget,
                                                          std::stop_token stop) {
  ++run_count_;
  const json::Value object = widget->to_value();
  const kube::ObjectKey key = kube::key_of(object);
  HANGAR_CO_TRY(co_await platform_.acting.check(key.namespace_, std::string(kWidgetAccount), stop));
  const kube::Client client =
      platform_.client.as(kube::service_account(key.namespace_, kWidgetAccount));
  const std::int64_t count = json::int_at(object, {"spec", "count"});
  for (std::int64_t index = 0; index < count; ++index) {
    (void)HANGAR_CO_TRY(co_await client.apply(kube::config_map_resource(), child_of(object, index),
                                              {.field_manager = "hangar-widgets", .force = true},
                                              stop));
  }
  HANGAR_CO_TRY(co_await remove_from(key, count, stop));
  json::Value status = json::Object{
      {"observedGeneration", json::int_at(object, {"metadata", "generation"})}, {"count", count}};
  const json::Value* const old = json::find(object, {"status"});
  if (old == nullptr || !json::equal(*old, status)) {
    (void)HANGAR_CO_TRY(
        co_await shell_.write_status(object, std::move(status), reconcile::StatusOf::Spec, stop));
    shell_.announce(object, fmt::format("has {}", count),
                    reconcile::EventText{.reason = "Scaled",
                                         .message = fmt::format("has {} ConfigMaps", count)});
  }
  co_return Outcome{};
}

reconcile::CustomResource::OutcomeTask Widgets::finalize(kube::ObjectPtr widget,
                                                         std::stop_token stop) {
  ++run_count_;
  HANGAR_CO_TRY(co_await remove_from(widget->key(), 0, stop));
  co_return Outcome{};
}

io::Task<Result<>> Widgets::remove_from(kube::ObjectKey widget, std::int64_t first,
                                        std::stop_token stop) {
  const kube::Client client =
      platform_.client.as(kube::service_account(widget.namespace_, kWidgetAccount));
  const kube::List list = HANGAR_CO_TRY(
      co_await client.list(kube::config_map_resource(),
                           {.namespace_ = widget.namespace_,
                            .label_selector = fmt::format("{}={}", kWidgetLabel, widget.name),
                            .page_size = 3},
                           stop));
  for (const kube::ObjectPtr& child : list.items) {
    const auto of = widget_of(child->key().name);
    if (!of || of->second < first) continue;
    const auto removed = co_await client.remove(kube::config_map_resource(), child->key(),
                                                {.uid = std::string(child->uid())}, stop);
    if (!removed && removed.error().kind() != ErrorKind::NotFound &&
        removed.error().kind() != ErrorKind::Conflict) {
      co_return std::unexpected(removed.error());
    }
  }
  co_return Result<>();
}

}  // namespace hangar::simulation
