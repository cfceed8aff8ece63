#include "gateway/documents.h"

#include "base/result.h"
#include "base/text.h"
#include "gateway/gateway.h"
#include "gateway/limits.h"
#include "http/client.h"
#include "json/value.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hangar::gateway {

namespace {

std::string_view word_of(WatchLine::Type type) {
  switch (type) {
    case WatchLine::Type::Added:
      return "ADDED";
    case WatchLine::Type::Modified:
      return "MODIFIED";
    case WatchLine::Type::Deleted:
      return "DELETED";
  }
  return "";
}

std::string quoted(std::string_view text) {
  return json::dump(json::Value(json::String(text)));
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t'))
    text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t'))
    text.remove_suffix(1);
  return text;
}

}  // namespace

std::string text_of(const Piece& piece) {
  if (const auto* text = std::get_if<std::string>(&piece)) return *text;
  const auto& line = std::get<WatchLine>(piece);
  const std::string_view word = word_of(line.type);
  const std::string_view object = line.object->bytes();
  std::string out;
  out.reserve(object.size() + 40);
  out.append(R"({"type":")").append(word).append(R"(","object":)").append(object).append("}\n");
  return out;
}

std::string status_document(const Refusal& refusal) {
  return fmt::format(
      R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":{},"reason":{},"code":{}}})",
      quoted(refusal.message), quoted(refusal.reason), refusal.code);
}

Refusal bad_request(std::string message) {
  return {400, "BadRequest", std::move(message)};
}

Refusal not_found(const kube::Resource& resource, std::string_view name) {
  return {404, "NotFound", fmt::format("{} \"{}\" not found", resource.qualified_plural(), name)};
}

Refusal expired(std::string message) {
  return {410, "Expired", std::move(message)};
}

Refusal too_many_requests() {
  return {429, "TooManyRequests",
          fmt::format("{} requests of the namespace wait for the API server already; ask again "
                      "later",
                      limits::kGatewayRequestsWaitingMax)};
}

Refusal no_answer(const Error& error, bool is_write) {
  switch (error.kind()) {
    case ErrorKind::InvalidInput:
      return bad_request(error.message());
    case ErrorKind::LimitExceeded:
      return {500, "InternalError", "the API server's answer is too large: " + error.message()};
    default:
      break;
  }
  const bool is_unknown = is_write && !http::was_never_sent(error);
  return {
      503, "ServiceUnavailable",
      fmt::format("the API server did not answer{}: {}",
                  is_unknown ? " and may or may not have carried this out" : "", error.message())};
}

std::string error_line(const Refusal& refusal) {
  return fmt::format(R"({{"type":"ERROR","object":{}}})"
                     "\n",
                     status_document(refusal));
}

std::string bookmark_line(const kube::Resource& resource, std::uint64_t version,
                          bool ends_initial_events) {
  return fmt::format(
      R"({{"type":"BOOKMARK","object":{{"kind":{},"apiVersion":{},"metadata":{{"resourceVersion":"{}"{}}}}}}})"
      "\n",
      quoted(resource.kind), quoted(resource.gvk().api_version()), version,
      ends_initial_events ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "");
}

ListText::ListText(const kube::Resource& resource, std::uint64_t version)
    : text_(fmt::format(
          R"({{"kind":{},"apiVersion":{},"metadata":{{"resourceVersion":"{}"}},"items":[)",
          quoted(resource.kind + "List"), quoted(resource.gvk().api_version()), version)) {}

void ListText::add(const kube::Object& item) {
  if (std::exchange(has_items_, true)) text_ += ',';
  text_ += item.bytes();
}

void ListText::end() {
  text_ += "]}";
}

Accepts read_accept(std::string_view header) {
  Accepts out;
  if (trimmed(header).empty()) return {.json = true, .json_only = "application/json"};
  while (!header.empty()) {
    const std::size_t end = std::min(header.find(','), header.size());
    const std::string range = to_lower(trimmed(header.substr(0, end)));
    const std::string_view original = trimmed(header.substr(0, end));
    header.remove_prefix(std::min(end + 1, header.size()));

    const std::size_t type_end = std::min(range.find(';'), range.size());
    const std::string_view type = trimmed(std::string_view(range).substr(0, type_end));
    std::string_view parameters = std::string_view(range).substr(type_end);
    bool is_transformed = false;
    while (!parameters.empty()) {
      parameters.remove_prefix(1);
      const std::size_t parameter_end = std::min(parameters.find(';'), parameters.size());
      is_transformed |= trimmed(parameters.substr(0, parameter_end)).starts_with("as=");
      parameters.remove_prefix(parameter_end);
    }
    // For other spellings and application/*, the API server accepts some kinds and refuses others,
    // so the gateway leaves them to it.
    const bool is_plain = original.starts_with("application/json") || type == "*/*";
    const bool is_json = type == "application/json" || type == "*/*" || type == "application/*";
    out.transformed |= is_transformed;
    out.json |= is_json && is_plain && !is_transformed;
    if (!is_json) continue;
    if (!out.json_only.empty()) out.json_only += ',';
    out.json_only += type == "*/*" ? "application/json" : original;
  }
  return out;
}

}  // namespace hangar::gateway
