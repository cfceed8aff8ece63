#include "seeing/callers.h"

#include "base/result.h"
#include "base/text.h"
#include "http/client.h"
#include "http/server.h"
#include "io/event.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "seeing/limits.h"

#include <cstddef>
#include <expected>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::seeing {

namespace {

constexpr const char* kReviews = "/apis/authentication.k8s.io/v1/tokenreviews";

// std::nullopt if the request has no bearer token.
std::optional<std::string> bearer_token(const http::Headers& headers) {
  constexpr std::string_view kScheme = "bearer ";
  const auto header = http::find_header(headers, "Authorization");
  if (!header || header->size() <= kScheme.size() ||
      !equals_ignoring_case(header->substr(0, kScheme.size()), kScheme)) {
    return std::nullopt;
  }
  return std::string(header->substr(kScheme.size()));
}

std::vector<std::string> texts_in(const json::Array* array) {
  std::vector<std::string> texts;
  if (array == nullptr) return texts;
  for (const json::Value& text : *array)
    texts.emplace_back(json::string_at(text, {}));
  return texts;
}

}  // namespace

std::string sharer_of(std::string_view user) {
  if (!user.starts_with(kube::kServiceAccountPrefix)) return std::string(user);
  const std::size_t end = user.find(':', kube::kServiceAccountPrefix.size());
  return std::string(user.substr(0, end));
}

io::Task<Result<kube::Identity>> Callers::identify(const http::ServerRequest& request,
                                                   std::stop_token stop) {
  if (request.client_name) {
    // An identity without a user would stand for the host (kube/client.h).
    if (request.client_name->empty()) {
      co_return fail(ErrorKind::Denied, "the client certificate has not exactly one common name");
    }
    co_return kube::Identity{.user = *request.client_name, .groups = request.client_organizations};
  }
  std::optional<std::string> token = bearer_token(request.headers);
  if (!token) {
    co_return fail(ErrorKind::Denied,
                   "the request has no credential: send a client certificate of the cluster, or a "
                   "bearer token");
  }
  if (token->size() > kTokenBytesMax) co_return fail(ErrorKind::Denied, "the token is too long");
  if (waiting_ >= kTokenReviewsWaitingMax) {
    co_return fail(ErrorKind::LimitExceeded, "too many tokens are being looked at: try again");
  }
  ++waiting_;
  const Result<io::Semaphore::Slot> slot = co_await reviews_.acquire(stop);
  --waiting_;
  if (!slot) co_return std::unexpected(slot.error());
  co_return co_await review(*std::move(token), std::move(stop));
}

io::Task<Result<kube::Identity>> Callers::review(std::string token, std::stop_token stop) {
  json::Value review =
      json::Object{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}};
  json::set_at(review, {"spec", "token"}, json::String(token));
  const Result<json::Value> reviewed =
      co_await client_.post_path(kReviews, std::move(review), std::move(stop));
  if (!reviewed) {
    co_return fail(ErrorKind::Unavailable,
                   "ask the API server whose token this is: " + reviewed.error().message());
  }
  const json::Value& answer = *reviewed;
  kube::Identity identity{
      .user = std::string(json::string_at(answer, {"status", "user", "username"})),
      .groups = texts_in(json::array_at(answer, {"status", "user", "groups"}))};
  if (!json::bool_at(answer, {"status", "authenticated"}) || identity.user.empty()) {
    co_return fail(ErrorKind::Denied, "the API server does not know this token");
  }
  if (const json::Object* const extra = json::object_at(answer, {"status", "user", "extra"})) {
    for (const auto& [key, values] : *extra)
      identity.extra[key] = texts_in(values.if_array());
  }
  co_return identity;
}

}  // namespace hangar::seeing
