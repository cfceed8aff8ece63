#include "admission/review.h"

#include "base/invalid.h"
#include "base/result.h"
#include "base/utf8.h"
#include "json/limits.h"
#include "json/skim.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <expected>
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

// Appends one member to the text of an object that is not closed yet.
void append_member(std::string& to, std::string_view key, std::string_view value) {
  to += to.empty() ? '{' : ',';
  to.append("\"").append(key).append("\":").append(value);
}

std::string closed(std::string object) {
  return object.empty() ? "{}" : std::move(object) + '}';
}

// The checked text of an object without metadata.managedFields. These repeat the object's fields a
// few levels deeper, and nobody who reviews an object needs them.
std::string without_managed_fields(std::string_view text) {
  std::string object;
  json::Skim skim(text);
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    const std::string_view value = skim.value();
    if (*key != "metadata" || !value.starts_with('{')) {
      append_member(object, *key, value);
      continue;
    }
    std::string metadata;
    json::Skim inner(value);
    for (auto fields = inner.object(); const auto field = inner.next_key(fields);) {
      const std::string_view content = inner.value();
      if (*field != "managedFields") append_member(metadata, *field, content);
    }
    append_member(object, *key, closed(std::move(metadata)));
  }
  return closed(std::move(object));
}

// The object with that checked text, as far as it can be a document. Null for what is no object.
json::Value object_in(std::string_view text, bool& is_cut) {
  is_cut = false;
  if (!text.starts_with('{')) return nullptr;
  const std::string kept = without_managed_fields(text);
  if (Result<json::Value> whole = json::parse(kept)) return *std::move(whole);
  is_cut = true;
  json::Object object;
  json::Skim skim(kept);
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    if (Result<json::Value> value = json::parse(skim.value())) {
      object[json::unescape(*key)] = *std::move(value);
    }
  }
  return object;
}

struct Document {
  json::Value value;
  bool is_object_cut = false;
  bool is_old_object_cut = false;
};

Result<json::Value> request_in(std::string_view text, Document& document) {
  json::Object request;
  json::Skim skim(text);
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    const std::string_view value = skim.value();
    if (*key == "object") {
      request["object"] = object_in(value, document.is_object_cut);
    } else if (*key == "oldObject") {
      request["oldObject"] = object_in(value, document.is_old_object_cut);
    } else {
      request[json::unescape(*key)] = HANGAR_TRY(json::parse(value));
    }
  }
  return request;
}

Result<Document> parse_document(std::string_view body) {
  Document document;
  Result<json::Value> whole = json::parse(body);
  if (whole) {
    document.value = *std::move(whole);
    return document;
  }
  // What Skim accepts, the parser refuses for its depth alone.
  json::Skim check(body);
  const bool is_object = check.peek() == '{';
  check.value();
  if (!is_object || !check.finish()) return std::unexpected(std::move(whole).error());
  json::Object review;
  json::Skim skim(body);
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    const std::string_view value = skim.value();
    const bool is_request = *key == "request" && value.starts_with('{');
    review[json::unescape(*key)] =
        HANGAR_TRY(is_request ? request_in(value, document) : json::parse(value));
  }
  document.value = std::move(review);
  return document;
}

std::string cut(std::string text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  constexpr std::string_view kCut = " ...";
  text.resize(utf8_beginning(text, bytes_max - kCut.size()).size());
  return text.append(kCut);
}

}  // namespace

Result<Review> parse_review(std::string_view body) {
  Document parsed = HANGAR_TRY(parse_document(body));
  json::Value& document = parsed.value;
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
  review.is_object_cut = parsed.is_object_cut;
  review.is_old_object_cut = parsed.is_old_object_cut;
  const bool has_object =
      review.operation == Operation::Create || review.operation == Operation::Update;
  if (has_object && !review.object.is_object()) return invalid("request.object: is required");
  if (review.operation == Operation::Update && !review.old_object.is_object()) {
    return invalid("request.oldObject: is required");
  }
  return review;
}

Result<> check_depth(const Review& review) {
  const bool is_being_deleted =
      json::find(review.object, {"metadata", "deletionTimestamp"}) != nullptr;
  if (!review.is_object_cut || is_being_deleted) return {};
  return invalid(
      fmt::format("the object is nested more than {} levels deep", limits::kDocumentDepthMax));
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
