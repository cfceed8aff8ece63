#include "modules/reference.h"

#include "base/digest.h"
#include "base/dns_name.h"
#include "base/result.h"
#include "base/text.h"
#include "http/authority.h"
#include "modules/internal/percent.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hangar::modules {

namespace {

// Longer than any URL that servers accept; a longer text is not a reference but probably a file's
// content.
constexpr std::size_t kReferenceBytesMax = 8192;
// The bounds of the distribution specification.
constexpr std::size_t kTagBytesMax = 128;
constexpr std::size_t kRepositoryBytesMax = 255;

constexpr std::string_view kDigestPrefix = "sha256:";

bool is_lower_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
}
bool is_letter_or_digit(char letter) {
  return is_lower_or_digit(letter) || (letter >= 'A' && letter <= 'Z');
}

// One component between slashes: runs of [a-z0-9] joined by ".", "_", "__" or dashes.
bool is_repository_component(std::string_view text) {
  if (text.empty() || !is_lower_or_digit(text.front()) || !is_lower_or_digit(text.back())) {
    return false;
  }
  for (std::size_t at = 0; at < text.size();) {
    if (is_lower_or_digit(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (!is_lower_or_digit(text[end]))
      ++end;  // The last character is, as checked above.
    const std::string_view separator = text.substr(at, end - at);
    const bool is_known = separator == "." || separator == "_" || separator == "__" ||
                          separator.find_first_not_of('-') == std::string_view::npos;
    if (!is_known) return false;
    at = end;
  }
  return true;
}

bool is_repository(std::string_view text) {
  if (text.size() > kRepositoryBytesMax) return false;
  while (true) {
    const std::size_t slash = text.find('/');
    if (!is_repository_component(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

bool is_tag(std::string_view text) {
  return !text.empty() && text.size() <= kTagBytesMax && text.front() != '.' &&
         text.front() != '-' && std::ranges::all_of(text, [](char letter) {
           return is_letter_or_digit(letter) || letter == '_' || letter == '.' || letter == '-';
         });
}

bool is_config_map_key(std::string_view text) {
  return !text.empty() && text.size() <= kDnsNameBytesMax && text != "." && text != ".." &&
         std::ranges::all_of(text, [](char letter) {
           return is_letter_or_digit(letter) || letter == '.' || letter == '-' || letter == '_';
         });
}

std::unexpected<Error> invalid(std::string_view display, std::string_view why) {
  return fail(ErrorKind::InvalidInput, fmt::format("module reference {}: {}", display, why));
}

struct Parsed {
  Reference::Source source;
  std::string display;
};

Result<Parsed> parse_http(std::string_view scheme, std::string_view rest) {
  rest = rest.substr(0, rest.find('#'));
  const std::size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  const std::string_view authority = rest.substr(0, authority_end);
  const std::string_view path_and_query = rest.substr(authority_end);
  const std::size_t at = authority.rfind('@');
  const std::string_view host = at == std::string_view::npos ? authority : authority.substr(at + 1);
  const std::size_t query = path_and_query.find('?');
  const std::string display =
      fmt::format("{}://{}{}{}", scheme, host, path_and_query.substr(0, query),
                  query == std::string_view::npos ? "" : "?...");
  const Result<http::Authority> server = http::parse_authority(host);
  if (!server) {
    return invalid(display, fmt::format("has no valid host: {}", server.error().message()));
  }

  HttpSource source;
  if (at != std::string_view::npos) {
    const std::string_view user_info = authority.substr(0, at);
    const std::size_t colon = user_info.find(':');
    const auto user = internal::percent_decode(user_info.substr(0, colon));
    const auto password = internal::percent_decode(
        colon == std::string_view::npos ? std::string_view() : user_info.substr(colon + 1));
    if (!user || !password) return invalid(display, "user or password is not percent-encoded");
    source.user = *user;
    source.password = *password;
  }
  // So that every parser of the URL agrees that the host ends where the path begins.
  const std::string_view slash = path_and_query.starts_with('/') ? "" : "/";
  source.url = fmt::format("{}://{}{}{}", scheme, server->to_string(), slash, path_and_query);
  return Parsed{std::move(source), display};
}

Result<Parsed> parse_oci(std::string_view rest) {
  const std::string display = fmt::format("oci://{}", rest);
  OciSource source;
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    source.digest = to_lower(rest.substr(at + 1));
    rest = rest.substr(0, at);
    if (!source.digest.starts_with(kDigestPrefix) ||
        !is_sha256_hex(std::string_view(source.digest).substr(kDigestPrefix.size()))) {
      return invalid(display, "the digest after @ must be sha256: and 64 hexadecimal digits");
    }
  }
  const std::size_t last_slash = rest.rfind('/');
  const std::size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos &&
      (last_slash == std::string_view::npos ? !http::parse_authority(rest) : colon > last_slash)) {
    source.tag = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (!is_tag(source.tag)) {
      return invalid(display, "a tag has 1 to 128 letters, digits, dots, dashes or underscores");
    }
  }
  if (source.tag.empty() && source.digest.empty()) source.tag = "latest";

  // As docker reads it: without a host, or what looks like one, it means Docker Hub.
  const std::size_t slash = rest.find('/');
  const std::string_view first = rest.substr(0, slash);
  const bool names_host =
      slash != std::string_view::npos &&
      (first.find_first_of(".:[") != std::string_view::npos || to_lower(first) == "localhost");
  source.repository = names_host ? rest.substr(slash + 1) : rest;
  const Result<http::Authority> server = http::parse_authority(names_host ? first : "docker.io");
  if (!server) {
    return invalid(display,
                   fmt::format("has no valid registry host: {}", server.error().message()));
  }
  source.registry = server->to_string();
  if (source.registry == "index.docker.io") source.registry = "docker.io";
  if (source.registry == "docker.io" && !source.repository.contains('/')) {
    source.repository.insert(0, "library/");
  }
  if (!is_repository(source.repository)) {
    return invalid(display,
                   "a repository is lower-case letters and digits, joined by dots, dashes, "
                   "underscores and slashes: oci://registry/repository:tag");
  }
  return Parsed{std::move(source), display};
}

Result<Parsed> parse_config_map(std::string_view rest) {
  const std::string display = fmt::format("configmap://{}", rest);
  constexpr std::string_view kForm = "write configmap://namespace/name or .../name/key";
  const std::size_t first = rest.find('/');
  if (first == std::string_view::npos) return invalid(display, kForm);
  const std::size_t second = rest.find('/', first + 1);
  ConfigMapSource source{.namespace_name = std::string(rest.substr(0, first)),
                         .name = std::string(rest.substr(first + 1, second - first - 1)),
                         .key = {}};
  if (second != std::string_view::npos) source.key = rest.substr(second + 1);
  if (!is_dns_subdomain(source.namespace_name) || !is_dns_subdomain(source.name) ||
      (second != std::string_view::npos && !is_config_map_key(source.key))) {
    return invalid(display, kForm);
  }
  return Parsed{std::move(source), display};
}

Result<Parsed> parse_file_url(std::string_view rest) {
  const std::string display = fmt::format("file://{}", rest);
  if (rest.starts_with("localhost/")) rest.remove_prefix(std::string_view("localhost").size());
  if (!rest.starts_with('/')) {
    return invalid(display, "names another host: write file:///absolute/path");
  }
  auto path = internal::percent_decode(rest.substr(0, rest.find_first_of("?#")));
  if (!path || path->contains('\0')) return invalid(display, "its path is not percent-encoded");
  return Parsed{FileSource{*std::move(path)}, display};
}

Result<Parsed> parse_source(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) {
    return Parsed{FileSource{std::string(text)}, std::string(text)};
  }
  const std::string scheme = to_lower(text.substr(0, colon));
  const std::string_view rest = text.substr(colon + 3);
  if (scheme == "http" || scheme == "https") return parse_http(scheme, rest);
  if (scheme == "oci") return parse_oci(rest);
  if (scheme == "configmap") return parse_config_map(rest);
  if (scheme == "file") return parse_file_url(rest);
  return invalid(fmt::format("{}://...", scheme),
                 "unknown scheme: use http, https, oci, configmap or file");
}

// "name.wasm.gz" -> "name": cut at the first dot, as yoke does.
std::string_view stem_of(std::string_view path) {
  path = path.substr(0, path.find('?'));
  path = path.substr(path.rfind('/') + 1);
  return path.substr(0, path.find('.'));
}

// What follows "sha256_" at the start of `name`, or else its first "_sha256_". It promises a digest
// even if it is none: a mistyped digest is refused like any other that the module does not have.
std::optional<std::string> promised_by(std::string_view name) {
  constexpr std::string_view kAtStart = "sha256_";
  constexpr std::string_view kWithin = "_sha256_";
  if (name.starts_with(kAtStart)) {
    name.remove_prefix(kAtStart.size());
  } else if (const std::size_t at = name.find(kWithin); at != std::string_view::npos) {
    name.remove_prefix(at + kWithin.size());
  } else {
    return std::nullopt;
  }
  if (name.empty()) return std::nullopt;
  return to_lower(name);
}

}  // namespace

Result<Reference> Reference::parse(std::string_view text) {
  if (text.empty()) return fail(ErrorKind::InvalidInput, "module reference is empty");
  if (text.size() > kReferenceBytesMax) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("module reference is longer than {} bytes", kReferenceBytesMax));
  }
  const bool is_plain = std::ranges::all_of(text, [](char letter) {
    constexpr unsigned char kDelete = 0x7f;
    const auto byte = static_cast<unsigned char>(letter);
    return byte > ' ' && byte != kDelete;
  });
  // Paths may contain spaces; control characters are refused everywhere: they would end a
  // request line.
  const bool is_path = !text.contains("://");
  if (!is_plain && (!is_path || std::ranges::any_of(text, [](char letter) {
        return static_cast<unsigned char>(letter) < ' ';
      }))) {
    return fail(ErrorKind::InvalidInput, "module reference has a space or a control character");
  }
  Parsed parsed = HANGAR_TRY(parse_source(text));
  return Reference(std::move(parsed.source), std::move(parsed.display), sha256_hex(text));
}

std::string Reference::meaning() const {
  const auto* const http = std::get_if<HttpSource>(&source_);
  return http != nullptr ? http->url : display_;
}

std::string Reference::place() const {
  if (const auto* const http = std::get_if<HttpSource>(&source_)) {
    return http->url.substr(0, http->url.find('?'));
  }
  if (const auto* const oci = std::get_if<OciSource>(&source_)) {
    return fmt::format("oci://{}/{}", oci->registry, oci->repository);
  }
  const auto* const file = std::get_if<FileSource>(&source_);
  return file != nullptr ? file->path : display_;
}

bool Reference::is_pinned() const {
  const auto* const oci = std::get_if<OciSource>(&source_);
  return oci != nullptr && !oci->digest.empty();
}

std::optional<std::string> expected_sha256(const Reference& reference,
                                           std::string_view explicit_sha256) {
  if (!explicit_sha256.empty()) return to_lower(explicit_sha256);
  if (const auto* const oci = std::get_if<OciSource>(&reference.source())) {
    return oci->tag.starts_with("sha256_") ? promised_by(oci->tag) : std::nullopt;
  }
  if (const auto* const http = std::get_if<HttpSource>(&reference.source())) {
    return promised_by(stem_of(http->url));
  }
  if (const auto* const file = std::get_if<FileSource>(&reference.source())) {
    return promised_by(stem_of(file->path));
  }
  return std::nullopt;
}

Result<> verify_sha256(std::string_view expected, std::string_view actual) {
  if (expected == actual) return {};
  return fail(ErrorKind::InvalidInput,
              fmt::format("cannot verify module against expected checksum: wanted \"{}\" but got "
                          "\"{}\"",
                          expected, actual));
}

Error without_reference(const Error& error, const Reference& reference) {
  const std::string named = fmt::format("module {}: ", reference.display());
  if (!error.message().starts_with(named)) return error;
  return Error(error.kind(), error.message().substr(named.size())).with_reason(error.reason());
}

}  // namespace hangar::modules
