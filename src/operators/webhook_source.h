// What a webhook configuration must say so that the API server sends its reviews to an operator of
// this host. Pure.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"
#include "operators/operator.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::operators {

// Of the host's webhook server; <namespace>/<name>/<path in the guest> follows.
inline constexpr std::string_view kReviewsPath = "/operators/";

[[nodiscard]] kube::Resource resource_of(WebhookKind kind);

struct Pointing {
  json::Array patch;               // In JSON; empty: the object is as it must be.
  std::vector<std::string> paths;  // Of its webhooks, in the guest.
};
// Each webhook of `object` keeps its path, behind the one of the operator. `client_config`: how the
// API server reaches a path of this host. InvalidInput: the object has no webhooks, or others look
// after them.
[[nodiscard]] Result<Pointing> point_at(
    const kube::ObjectKey& operator_key, WebhookKind kind, const json::Value& object,
    const std::function<json::Value(std::string_view path)>& client_config);

// A path of the server, behind kReviewsPath.
struct ReviewTarget {
  kube::ObjectKey key;
  std::string path;  // In the guest: begins with '/'.
};
// Nothing: it names no operator, or has bytes that a path cannot have.
[[nodiscard]] std::optional<ReviewTarget> parse_review_path(std::string_view path);

}  // namespace hangar::operators
