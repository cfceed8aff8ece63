#include "gateway/request_target.h"

#include "base/number.h"
#include "base/result.h"
#include "base/text.h"
#include "gateway/limits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

bool is_control(unsigned char byte) {
  return byte < 0x20 || byte == 0x7f;
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[at] != '%') {
      out += text[at];
    } else {
      if (at + 2 >= text.size()) return std::nullopt;
      const int high = hex_value(text[at + 1]);
      const int low = hex_value(text[at + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      at += 2;
    }
  }
  return out;
}

void encode(std::string& out, std::string_view text) {
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                          (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' ||
                          byte == '.' || byte == '~';
    if (is_plain) {
      out += character;
    } else {
      out += '%';
      out += kHexDigits[byte >> 4U];
      out += kHexDigits[byte & 15U];
    }
  }
}

// The target from its path on. InvalidInput if it is neither an absolute URI nor a path.
Result<std::string_view> without_authority(std::string_view target) {
  if (target.starts_with('/')) return target;
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?#"), target.size());
    const std::string_view authority = target.substr(0, end);
    if (authority.empty() || authority.contains('@')) {
      return fail(ErrorKind::InvalidInput, "the URI's host is empty or has a user");
    }
    if (!target.substr(end).starts_with('/')) {
      return fail(ErrorKind::InvalidInput, "the URI has no path");
    }
    return target.substr(end);
  }
  return fail(ErrorKind::InvalidInput, "the request's target must begin with '/'");
}

Result<> read_path(std::string_view path, RequestTarget& out) {
  path.remove_prefix(1);
  if (path.ends_with('/')) {
    out.ends_with_slash = true;
    path.remove_suffix(1);
  }
  if (path.empty() && !out.ends_with_slash) return {};  // "/" itself.
  while (true) {
    const std::size_t end = std::min(path.find('/'), path.size());
    auto segment = decode(path.substr(0, end), /*plus_is_space=*/false);
    if (!segment) return fail(ErrorKind::InvalidInput, "the path is not percent-encoded");
    if (segment->empty()) return fail(ErrorKind::InvalidInput, "the path has an empty segment");
    if (*segment == "." || *segment == "..") {
      return fail(ErrorKind::InvalidInput, "the path has a segment '.' or '..'");
    }
    // The API server decodes a path before it splits it; a parser that decodes twice would read
    // another path.
    const bool is_ambiguous = std::ranges::any_of(*segment, [](char character) {
      return character == '/' || character == '\\' || character == '%' ||
             is_control(static_cast<unsigned char>(character));
    });
    if (is_ambiguous) {
      return fail(ErrorKind::InvalidInput,
                  "a segment of the path has an encoded '/', '\\', '%' or control character");
    }
    out.segments.push_back(*std::move(segment));
    if (end == path.size()) return {};
    path.remove_prefix(end + 1);
  }
}

Result<> read_query(std::string_view query, RequestTarget& out) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    if (pair.contains(';')) return fail(ErrorKind::InvalidInput, "the query has a ';'");
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = decode(pair.substr(0, equals), /*plus_is_space=*/true);
    auto value = decode(pair.substr(std::min(equals + 1, pair.size())), /*plus_is_space=*/true);
    if (!name || !value) return fail(ErrorKind::InvalidInput, "the query is not percent-encoded");
    out.query.emplace_back(*std::move(name), *std::move(value));
  }
  return {};
}

// As the API server reads a bool: only these two words are false.
bool is_true(std::string_view text) {
  return text != "0" && !equals_ignoring_case(text, "false");
}

ReadOptions read_options(const RequestTarget& target) {
  ReadOptions options;
  const auto text = [&target](std::string_view name, std::string& out) {
    if (const std::string* value = target.parameter(name)) out = *value;
  };
  const auto number = [&](std::string_view name) -> std::optional<std::int64_t> {
    const std::string* value = target.parameter(name);
    if (value == nullptr) return std::nullopt;
    auto parsed = parse_number<std::int64_t>(*value);
    if (!parsed || *parsed < 0) options.is_malformed = true;
    return parsed;
  };
  text("labelSelector", options.label_selector);
  text("fieldSelector", options.field_selector);
  text("resourceVersion", options.resource_version);
  text("resourceVersionMatch", options.resource_version_match);
  text("continue", options.continue_token);
  options.limit = number("limit").value_or(0);
  options.timeout_seconds = number("timeoutSeconds");
  if (const std::string* value = target.parameter("sendInitialEvents")) {
    options.send_initial_events = is_true(*value);
  }
  if (const std::string* value = target.parameter("allowWatchBookmarks")) {
    options.allow_watch_bookmarks = is_true(*value);
  }
  return options;
}

// As RequestInfoFactory.NewRequestInfo.
void read_resource(RequestTarget& target) {
  std::span<const std::string> parts = target.segments;
  const auto take = [&parts] {
    const std::string& first = parts.front();
    parts = parts.subspan(1);
    return first;
  };
  // It turned out not to be a resource path.
  const auto leave = [&target] {
    target.group.clear();
    target.version.clear();
  };
  if (target.ends_with_slash || parts.size() < 3) return;
  const std::string prefix = take();
  if (prefix != "api" && prefix != "apis") return;
  if (prefix == "apis") {
    if (parts.size() < 3) return;
    target.group = take();
  }
  target.version = take();
  const bool has_watch = parts.front() == "watch";
  if (has_watch || parts.front() == "proxy") {
    // These words are verbs. "watch" alone is an error; no API server still serves "proxy".
    if (parts.size() < 2 || parts.front() == "proxy") return leave();
    take();
  }
  if (parts.front() == "namespaces" && parts.size() > 1) {
    target.namespace_ = parts[1];
    target.is_namespace_itself =
        parts.size() == 2 || parts[2] == "status" || parts[2] == "finalize";
    if (!target.is_namespace_itself) parts = parts.subspan(2);
  }
  target.plural = parts[0];
  if (parts.size() > 1) target.name = parts[1];
  if (parts.size() > 2) target.subresource = parts[2];
  target.is_legacy_watch = has_watch;
}

Verb verb_of(std::string_view method, const RequestTarget& target) {
  if (!target.is_resource()) return Verb::Other;
  if (method == "POST") return Verb::Create;
  if (method == "PUT") return Verb::Update;
  if (method == "PATCH") return Verb::Patch;
  if (method == "DELETE") return target.name.empty() ? Verb::DeleteCollection : Verb::Delete;
  if (method != "GET") return Verb::Other;
  if (target.is_legacy_watch) return Verb::Watch;
  if (!target.name.empty()) return Verb::Get;
  const std::string* watch = target.parameter("watch");
  return watch != nullptr && is_true(*watch) ? Verb::Watch : Verb::List;
}

}  // namespace

std::string_view name_of(Verb verb) {
  switch (verb) {
    case Verb::Get:
      return "get";
    case Verb::List:
      return "list";
    case Verb::Watch:
      return "watch";
    case Verb::Create:
      return "create";
    case Verb::Update:
      return "update";
    case Verb::Patch:
      return "patch";
    case Verb::Delete:
      return "delete";
    case Verb::DeleteCollection:
      return "deletecollection";
    case Verb::Other:
      return "other";
  }
  return "other";
}

const std::string* RequestTarget::parameter(std::string_view name_in) const {
  const auto found = std::ranges::find(query, name_in, &std::pair<std::string, std::string>::first);
  return found == query.end() ? nullptr : &found->second;
}

void RequestTarget::ask_for_newest() {
  std::erase_if(query, [](const auto& one) {
    return one.first == "resourceVersion" || one.first == "resourceVersionMatch";
  });
  options.resource_version.clear();
  options.resource_version_match.clear();
}

std::string RequestTarget::to_string() const {
  std::string out;
  for (const std::string& segment : segments) {
    out += '/';
    encode(out, segment);
  }
  if (ends_with_slash || segments.empty()) out += '/';
  char separator = '?';
  for (const auto& [key, value] : query) {
    out += separator;
    encode(out, key);
    out += '=';
    encode(out, value);
    separator = '&';
  }
  return out;
}

Result<RequestTarget> parse_target(std::string_view method, std::string_view target) {
  if (target.size() > limits::kGatewayTargetBytesMax) {
    return fail(ErrorKind::InvalidInput, "path and query are too long");
  }
  const bool is_printable = std::ranges::none_of(target, [](char character) {
    return character == ' ' || is_control(static_cast<unsigned char>(character));
  });
  if (!is_printable) {
    return fail(ErrorKind::InvalidInput,
                "path and query must not have spaces or control characters");
  }
  const std::string_view rest = HANGAR_TRY(without_authority(target));
  if (rest.contains('#')) return fail(ErrorKind::InvalidInput, "the URI has a fragment");

  RequestTarget out;
  const std::size_t path_end = std::min(rest.find('?'), rest.size());
  HANGAR_TRY(read_path(rest.substr(0, path_end), out));
  HANGAR_TRY(read_query(rest.substr(std::min(path_end + 1, rest.size())), out));
  read_resource(out);
  out.verb = verb_of(method, out);
  out.options = read_options(out);
  return out;
}

}  // namespace hangar::gateway
