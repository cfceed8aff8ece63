#include "admission/review.h"

#include "base/invalid.h"
#include "base/result.h"
#include "base/utf8.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::admission {

namespace {

constexpr std::string_view kApiVersion = "admission.k8s.io/v1";
constexpr std::string_view kKind = "AdmissionReview";

// The part of a message and of each warning that the API server passes on; it cuts or logs
// the rest.
constexpr std::size_t kMessageBytesMax = 4096;
constexpr std::size_t kWarningBytesMax = 256;
constexpr std::size_t kWarningsMax = 16;

constexpr std::array kOperations = {
    std::pair{Operation::Create, std::string_view("CREATE")},
    std::pair{Operation::Update, std::string_view("UPDATE")},
    std::pair{Operation::Delete, std::string_view("DELETE")},
    std::pair{Operation::Connect, std::string_view("CONNECT")},
};

int code_for(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidInput:
    case ErrorKind::GuestFault:
      return 422;
    case ErrorKind::Conflict:
      return 409;
    case ErrorKind::Unavailable:
    case ErrorKind::Cancelled:
      return 503;
    default:
      return 403;
  }
}

std::vector<std::string> texts_in(const json::Array* array) {
  std::vector<std::string> texts;
  if (array == nullptr) return texts;
  for (const json::Value& one : *array) {
    if (const auto* const text = one.if_string()) texts.emplace_back(*text);
  }
  return texts;
}

kube::Identity identity_in(const json::Value& request) {
  kube::Identity identity{.user = std::string(json::string_at(request, {"userInfo", "username"})),
                          .groups = texts_in(json::array_at(request, {"userInfo", "groups"}))};
  if (const json::Object* const extra = json::object_at(request, {"userInfo", "extra"})) {
    for (const auto& [key, values] : *extra)
      identity.extra[key] = texts_in(values.if_array());
  }
  return identity;
}

std::string cut(std::string text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  constexpr std::string_view kCut = " ...";
  text.resize(utf8_beginning(text, bytes_max - kCut.size()).size());
  return text.append(kCut);
}

}  // namespace

Result<Review> parse_review(std::string_view body) {
  json::Value document = HANGAR_TRY(json::parse(body));
  if (!document.is_object()) return invalid("an AdmissionReview must be an object");
  if (json::string_at(document, {"apiVersion"}) != kApiVersion ||
      json::string_at(document, {"kind"}) != kKind) {
    return invalid(fmt::format("expected {} {}, not {} {}", kApiVersion, kKind,
                               json::string_at(document, {"apiVersion"}),
                               json::string_at(document, {"kind"})));
  }
  json::Value* const request = json::find(document, {"request"});
  if (request == nullptr || !request->is_object()) return invalid("request: is required");
  Review review{.uid = std::string(json::string_at(*request, {"uid"}))};
  if (review.uid.empty()) return invalid("request.uid: is required");
  const std::string_view operation = json::string_at(*request, {"operation"});
  const auto* const found =
      std::ranges::find(kOperations, operation, &std::pair<Operation, std::string_view>::second);
  if (found == kOperations.end()) {
    return invalid(fmt::format("request.operation: \"{}\" is not CREATE, UPDATE, DELETE or CONNECT",
                               operation));
  }
  review.operation = found->first;
  review.kind = {.group = std::string(json::string_at(*request, {"kind", "group"})),
                 .version = std::string(json::string_at(*request, {"kind", "version"})),
                 .kind = std::string(json::string_at(*request, {"kind", "kind"}))};
  review.key = {.namespace_ = std::string(json::string_at(*request, {"namespace"})),
                .name = std::string(json::string_at(*request, {"name"}))};
  review.identity = identity_in(*request);
  review.is_dry_run = json::bool_at(*request, {"dryRun"});
  if (json::Value* const object = json::find(*request, {"object"})) {
    review.object = std::move(*object);
  }
  if (json::Value* const old = json::find(*request, {"oldObject"})) {
    review.old_object = std::move(*old);
  }
  const bool has_object =
      review.operation == Operation::Create || review.operation == Operation::Update;
  if (has_object && !review.object.is_object()) return invalid("request.object: is required");
  if (review.operation == Operation::Update && !review.old_object.is_object()) {
    return invalid("request.oldObject: is required");
  }
  return review;
}

Decision refusal(const Error& error) {
  return {.is_allowed = false, .code = code_for(error.kind()), .message = error.message()};
}

Decision allowed_with(std::string warning) {
  Decision decision;
  decision.warnings.push_back(std::move(warning));
  return decision;
}

std::string answer_to(std::string_view uid, const Decision& decision) {
  json::Object response{{"uid", uid}, {"allowed", decision.is_allowed}};
  if (!decision.is_allowed) {
    response["status"] = json::Object{{"code", decision.code == 0 ? 403 : decision.code},
                                      {"message", cut(decision.message, kMessageBytesMax)}};
  }
  if (!decision.warnings.empty()) {
    json::Array warnings;
    for (const std::string& warning : decision.warnings) {
      if (warnings.size() == kWarningsMax) break;
      warnings.emplace_back(cut(warning, kWarningBytesMax));
    }
    response["warnings"] = std::move(warnings);
  }
  return json::dump(json::Object{
      {"apiVersion", kApiVersion}, {"kind", kKind}, {"response", std::move(response)}});
}

}  // namespace hangar::admission
