#include "operators/webhook_source.h"

#include "admission/kept_objects.h"
#include "base/invalid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hangar::operators {

namespace {

constexpr std::string_view kInjectedBy = "cert-manager.io/inject-";
constexpr std::size_t kReviewPathBytesMax = 2048;

// The path of a `clientConfig`, whether it has a Service or a URL.
std::string path_of(const json::Value& client_config) {
  std::string path(json::string_at(client_config, {"service", "path"}));
  if (const std::string_view url = json::string_at(client_config, {"url"}); !url.empty()) {
    const std::size_t host = url.find("://");
    const std::size_t begin = url.find('/', host == std::string_view::npos ? 0 : host + 3);
    path = begin == std::string_view::npos ? "" : url.substr(begin);
  }
  return path.starts_with('/') ? path : "/" + path;
}

// The path without that of the operator, if it begins so.
Result<std::string> path_in_guest(std::string path, std::string_view prefix) {
  if (!path.starts_with(kReviewsPath)) return path;
  if (path == prefix) return "/";
  if (!path.starts_with(fmt::format("{}/", prefix))) {
    return invalid(fmt::format("the path {} is that of another operator", path));
  }
  return path.substr(prefix.size());
}

Result<> check_owners(const json::Value& object) {
  if (const json::Object* const annotations =
          json::object_at(object, {"metadata", "annotations"})) {
    for (const auto& annotation : *annotations) {
      if (!std::string_view(annotation.key()).starts_with(kInjectedBy)) continue;
      return invalid(
          fmt::format("it has the annotation {}: without it, hangar puts its own authority in",
                      std::string_view(annotation.key())));
    }
  }
  if (json::find(object, {"metadata", "labels", admission::kKeptByLabel}) != nullptr) {
    return invalid("it is one of the host's own");
  }
  return {};
}

}  // namespace

kube::Resource resource_of(WebhookKind kind) {
  if (kind == WebhookKind::Conversion) {
    return {.group = "apiextensions.k8s.io",
            .version = "v1",
            .plural = "customresourcedefinitions",
            .kind = std::string(name_of(kind))};
  }
  return {.group = "admissionregistration.k8s.io",
          .version = "v1",
          .plural = kind == WebhookKind::Mutating ? "mutatingwebhookconfigurations"
                                                  : "validatingwebhookconfigurations",
          .kind = std::string(name_of(kind))};
}

Result<Pointing> point_at(const kube::ObjectKey& operator_key, WebhookKind kind,
                          const json::Value& object,
                          const std::function<json::Value(std::string_view path)>& client_config) {
  HANGAR_TRY(check_owners(object));
  const std::string prefix =
      fmt::format("{}{}/{}", kReviewsPath, operator_key.namespace_, operator_key.name);
  Pointing pointing;
  const auto point = [&](const json::Value& webhook, std::string_view at) -> Result<> {
    const json::Value* const present = json::find(webhook, {"clientConfig"});
    std::string path =
        HANGAR_TRY(path_in_guest(path_of(present != nullptr ? *present : json::Value()), prefix));
    json::Value wanted = client_config(prefix + path);
    pointing.paths.push_back(std::move(path));
    if (present != nullptr && json::equal(*present, wanted)) return {};
    pointing.patch.push_back(json::Object{
        {"op", "add"}, {"path", fmt::format("{}/clientConfig", at)}, {"value", std::move(wanted)}});
    return {};
  };
  if (kind == WebhookKind::Conversion) {
    const json::Value* const webhook = json::find(object, {"spec", "conversion", "webhook"});
    if (json::string_at(object, {"spec", "conversion", "strategy"}) != "Webhook" ||
        webhook == nullptr) {
      return invalid("spec.conversion.strategy is not Webhook");
    }
    HANGAR_TRY(point(*webhook, "/spec/conversion/webhook"));
  } else {
    const json::Array* const webhooks = json::array_at(object, {"webhooks"});
    if (webhooks == nullptr || webhooks->empty()) return invalid("it has no webhooks");
    for (std::size_t index = 0; index < webhooks->size(); ++index)
      HANGAR_TRY(point((*webhooks)[index], fmt::format("/webhooks/{}", index)));
  }
  if (!pointing.patch.empty()) {
    // As a write of that very version: others change the object, too.
    pointing.patch.insert(
        pointing.patch.begin(),
        json::Object{{"op", "replace"},
                     {"path", "/metadata/resourceVersion"},
                     {"value", json::string_at(object, {"metadata", "resourceVersion"})}});
  }
  return pointing;
}

std::optional<ReviewTarget> parse_review_path(std::string_view path) {
  const bool is_printable =
      std::ranges::all_of(path, [](unsigned char letter) { return letter > ' ' && letter < 0x7f; });
  if (!is_printable || path.size() > kReviewPathBytesMax) return std::nullopt;
  const std::size_t name = path.find('/');
  if (name == std::string_view::npos || name == 0) return std::nullopt;
  const std::size_t rest = std::min(path.find('/', name + 1), path.size());
  if (rest == name + 1) return std::nullopt;
  std::string in_guest(path.substr(rest));
  return ReviewTarget{.key = {.namespace_ = std::string(path.substr(0, name)),
                              .name = std::string(path.substr(name + 1, rest - name - 1))},
                      .path = in_guest.empty() ? "/" : std::move(in_guest)};
}

}  // namespace hangar::operators
