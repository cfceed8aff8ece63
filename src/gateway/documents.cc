#include "gateway/documents.h"

#include "base/result.h"
#include "base/text.h"
#include "gateway/gateway.h"
#include "gateway/limits.h"
#include "gateway/request_target.h"
#include "http/client.h"
#include "json/value.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

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

constexpr std::string_view kMetadataVersion = "meta.k8s.io/v1";
constexpr std::string_view kMetadataKind = "PartialObjectMetadata";

kube::GroupVersionKind shown_type(const kube::Resource& resource, kube::Detail detail) {
  if (detail == kube::Detail::Whole) return resource.gvk();
  return kube::make_gvk(kMetadataVersion, kMetadataKind);
}

void append_object(std::string& out, const kube::Object& object, kube::Detail detail) {
  const kube::ObjectText text = object.text();
  if (detail == kube::Detail::Whole) {
    out += text.view();
    return;
  }
  out.append(R"({"kind":")").append(kMetadataKind);
  out.append(R"(","apiVersion":")").append(kMetadataVersion);
  out.append(R"(","metadata":)").append(kube::metadata_text_of(text.view())).append("}");
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t'))
    text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t'))
    text.remove_suffix(1);
  return text;
}

// One media range of an Accept header.
struct Range {
  std::string_view type;
  std::string_view subtype;
  double quality = 1;
  // The parameters as, g and v; empty: not given.
  std::string_view as;
  std::string_view group;
  std::string_view version;

  [[nodiscard]] bool is(std::string_view type_in, std::string_view subtype_in) const {
    return type == type_in && subtype == subtype_in;
  }
};

// Calls `visit(name, value)` for each parameter of ";name=value;name=value", the name without
// blanks; the value is nothing where the parameter has no '='.
void for_each_parameter(std::string_view parameters, const auto& visit) {
  while (!parameters.empty()) {
    parameters.remove_prefix(1);
    const std::size_t end = std::min(parameters.find(';'), parameters.size());
    const std::string_view parameter = parameters.substr(0, end);
    parameters.remove_prefix(end);
    const std::size_t equals = std::min(parameter.find('='), parameter.size());
    const bool has_value = equals < parameter.size();
    visit(trimmed(parameter.substr(0, equals)),
          has_value ? std::optional(parameter.substr(equals + 1)) : std::nullopt);
  }
}

// Whether the parameters name a transformation: as=Table;g=meta.k8s.io;v=v1.
bool has_transformation(std::string_view parameters) {
  bool found = false;
  for_each_parameter(parameters, [&](std::string_view name, const auto&) {
    const std::string word = to_lower(name);
    found |= word == "as" || word == "g" || word == "v";
  });
  return found;
}

// "1", "0.5", "0.123": what every parser reads alike.
std::optional<double> parse_quality(std::string_view text) {
  constexpr std::size_t kLengthMax = 5;
  const bool is_plain = text.size() <= kLengthMax &&
                        text.find_first_not_of("0123456789.") == std::string_view::npos &&
                        (text.starts_with('0') || text.starts_with('1'));
  double quality = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), quality);
  const bool is_number = code == std::errc() && end == text.data() + text.size();
  return is_plain && is_number && quality <= 1 ? std::optional(quality) : std::nullopt;
}

bool is_usual_type(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char character) {
    return (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9') ||
           std::string_view("*+-.").contains(character);
  });
}

// Nothing for what is written in an unusual way, or has other parameters.
std::optional<Range> parse_range(std::string_view text) {
  const std::size_t type_end = std::min(text.find(';'), text.size());
  const std::string_view type = text.substr(0, type_end);
  const std::size_t slash = std::min(type.find('/'), type.size());
  Range range{.type = trimmed(type.substr(0, slash))};
  range.subtype = trimmed(type.substr(std::min(slash + 1, type.size())));
  bool is_usual = is_usual_type(range.type) && is_usual_type(range.subtype);
  bool has_quality = false;
  const auto set = [&is_usual](std::string_view& member, std::string_view value) {
    is_usual &= member.empty() && !value.empty();
    member = value;
  };
  for_each_parameter(text.substr(type_end), [&](std::string_view name, const auto& value) {
    is_usual &= value && !value->contains('=');
    if (!is_usual) return;
    if (name == "q") {
      const auto quality = parse_quality(*value);
      is_usual = quality && !std::exchange(has_quality, true);
      range.quality = quality.value_or(0);
    } else if (name == "as") {
      set(range.as, trimmed(*value));
    } else if (name == "g") {
      set(range.group, trimmed(*value));
    } else if (name == "v") {
      set(range.version, trimmed(*value));
    } else {
      is_usual = false;
    }
  });
  return is_usual ? std::optional(range) : std::nullopt;
}

// Go's sort.Sort() inserts as few ranges as these one by one.
constexpr std::size_t kRangesMax = 12;

// Into the API server's order. Its comparison (goautoneg's) is not a strict order, so the result
// depends on the algorithm as well.
void sort_as_server(std::vector<Range>& ranges) {
  const auto comes_before = [](const Range& one, const Range& other) {
    return one.quality > other.quality || (one.type != "*" && other.type == "*") ||
           (one.subtype != "*" && other.subtype == "*");
  };
  for (std::size_t end = 1; end < ranges.size(); ++end)
    for (std::size_t at = end; at > 0 && comes_before(ranges[at], ranges[at - 1]); --at)
      std::swap(ranges[at], ranges[at - 1]);
}

// How much of an object the API server would answer with to a header that names transformations, if
// JSON is acceptable for that. Nothing if it is not, or if the answer is not certain.
std::optional<kube::Detail> negotiated(std::string_view header, Verb verb) {
  std::vector<Range> ranges;
  while (!header.empty()) {
    const std::size_t end = std::min(header.find(','), header.size());
    const auto range = parse_range(trimmed(header.substr(0, end)));
    if (!range || ranges.size() == kRangesMax) return std::nullopt;
    ranges.push_back(*range);
    header.remove_prefix(std::min(end + 1, header.size()));
  }
  sort_as_server(ranges);
  const std::string_view kind =
      verb == Verb::List ? std::string_view("PartialObjectMetadataList") : kMetadataKind;
  // What the ranges so far name. Whether the API server has their formats depends on the resource.
  std::optional<kube::Detail> named;
  for (const Range& range : ranges) {
    const bool is_whole = range.as.empty() && range.group.empty() && range.version.empty();
    const bool is_metadata =
        range.as == kind && range.group == "meta.k8s.io" && range.version == "v1";
    if (!is_whole && !is_metadata) return std::nullopt;
    const kube::Detail detail = is_whole ? kube::Detail::Whole : kube::Detail::Metadata;
    if (named.value_or(detail) != detail) return std::nullopt;
    if (range.is("application", "json") || range.is("*", "*")) return detail;
    if (range.type.contains('*') || range.subtype.contains('*')) return std::nullopt;
    named = detail;
  }
  return std::nullopt;
}

}  // namespace

std::string text_of(const Piece& piece) {
  if (const auto* text = std::get_if<std::string>(&piece)) return *text;
  const auto& line = std::get<WatchLine>(piece);
  const std::string_view word = word_of(line.type);
  std::string out;
  if (line.detail == kube::Detail::Whole) out.reserve(line.object->text_size() + 40);
  out.append(R"({"type":")").append(word).append(R"(","object":)");
  append_object(out, *line.object, line.detail);
  out.append("}\n");
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
                          bool ends_initial_events, kube::Detail detail) {
  const kube::GroupVersionKind type = shown_type(resource, detail);
  return fmt::format(
      R"({{"type":"BOOKMARK","object":{{"kind":{},"apiVersion":{},"metadata":{{"resourceVersion":"{}"{}}}}}}})"
      "\n",
      quoted(type.kind), quoted(type.api_version()), version,
      ends_initial_events ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "");
}

std::string object_text(const kube::Object& object, kube::Detail detail) {
  std::string out;
  append_object(out, object, detail);
  return out;
}

ListText::ListText(const kube::Resource& resource, std::uint64_t version, kube::Detail detail)
    : detail_(detail) {
  const kube::GroupVersionKind type = shown_type(resource, detail);
  text_ =
      fmt::format(R"({{"kind":{},"apiVersion":{},"metadata":{{"resourceVersion":"{}"}},"items":)",
                  quoted(type.kind + "List"), quoted(type.api_version()), version);
}

void ListText::add(const kube::Object& item) {
  text_ += std::exchange(has_items_, true) ? ',' : '[';
  append_object(text_, item, detail_);
}

void ListText::end() {
  // The API server's lists of metadata have null in place of no items.
  const std::string_view none = detail_ == kube::Detail::Whole ? "[]" : "null";
  text_ += has_items_ ? "]" : none;
  text_ += '}';
}

Accepts read_accept(std::string_view header, Verb verb) {
  if (trimmed(header).empty()) {
    return {.cached = kube::Detail::Whole, .json_only = "application/json"};
  }
  Accepts out;
  bool is_transformed = false;
  bool is_json = false;
  std::string json_as_written;
  const std::string_view all = header;
  while (!header.empty()) {
    const std::size_t end = std::min(header.find(','), header.size());
    const std::string_view original = trimmed(header.substr(0, end));
    header.remove_prefix(std::min(end + 1, header.size()));

    const std::size_t type_end = std::min(original.find(';'), original.size());
    const std::string type = to_lower(trimmed(original.substr(0, type_end)));
    is_transformed |= has_transformation(original.substr(type_end));
    if (type != "application/json" && type != "*/*" && type != "application/*") continue;
    // For other spellings and application/*, the API server accepts some kinds and refuses others,
    // so the gateway leaves them to it.
    is_json |= original.starts_with("application/json") || type == "*/*";
    for (std::string* const list : {&out.json_only, &json_as_written})
      if (!list->empty()) *list += ',';
    out.json_only += type == "*/*" ? "application/json" : original;
    json_as_written += original;
  }
  if (is_transformed) {
    // Its ranges name different things, so their order counts.
    out.json_only = std::move(json_as_written);
    out.cached = negotiated(verb == Verb::Watch ? out.json_only : all, verb);
  } else if (is_json) {
    out.cached = kube::Detail::Whole;
  }
  return out;
}

}  // namespace hangar::gateway
