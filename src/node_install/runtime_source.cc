#include "node_install/runtime_source.h"

#include "base/digest.h"
#include "base/result.h"
#include "node_install/runtimes.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {

bool RuntimeSource::is_archive() const {
  const std::string_view path = std::string_view(url).substr(0, url.find('?'));
  return path.ends_with(".tar.gz") || path.ends_with(".tgz");
}

namespace {

constexpr std::string_view kSha256 = "#sha256:";
constexpr std::string_view kProgramSha256 = "#program-sha256:";

std::unexpected<Error> invalid(std::string_view text, std::string_view what,
                               std::string_view grammar) {
  return fail(ErrorKind::InvalidInput, fmt::format("{}: {}; write {}", text, what, grammar));
}

// FILE[@ARCHITECTURE], the text before the '='.
Result<RuntimeSource> parse_name(std::string_view text, std::string_view name,
                                 std::string_view grammar) {
  const std::size_t at = name.find('@');
  RuntimeSource source{.file = std::string(name.substr(0, at))};
  if (at != std::string_view::npos) source.architecture = name.substr(at + 1);
  HANGAR_TRY(handler_of(source.file, ""));
  if (at != std::string_view::npos && source.architecture != "amd64" &&
      source.architecture != "arm64") {
    return invalid(text, "the architecture is amd64 or arm64", grammar);
  }
  return source;
}

}  // namespace

Result<RuntimeSource> parse_runtime_source(std::string_view text) {
  constexpr std::string_view kGrammar =
      "FILE[@ARCHITECTURE]=URL#sha256:HEX, for an archive with #program-sha256:HEX behind it";
  const std::size_t equals = text.find('=');
  const std::size_t program = text.rfind(kProgramSha256);
  const std::string_view before = text.substr(0, program);
  const std::size_t hash = before.rfind(kSha256);
  if (equals == std::string_view::npos || hash == std::string_view::npos || hash < equals)
    return invalid(text, "no URL with a checksum", kGrammar);
  RuntimeSource source = HANGAR_TRY(parse_name(text, text.substr(0, equals), kGrammar));
  source.url = before.substr(equals + 1, hash - equals - 1);
  source.sha256 = before.substr(hash + kSha256.size());
  if (!source.url.starts_with("https://") && !source.url.starts_with("http://"))
    return invalid(text, "the URL is not http or https", kGrammar);
  const std::string_view behind_scheme =
      std::string_view(source.url).substr(source.url.find("//") + 2);
  if (behind_scheme.substr(0, behind_scheme.find_first_of("/?#")).contains('@')) {
    // Without the text, which would repeat the password.
    return fail(ErrorKind::InvalidInput,
                fmt::format("{}: the URL must not contain a user or password: everyone who can "
                            "read Jobs or Nodes would see it",
                            source.file));
  }
  if (!is_sha256_hex(source.sha256))
    return invalid(text, "the checksum is not 64 hex digits", kGrammar);
  source.program_sha256 = program == std::string_view::npos
                              ? source.sha256
                              : text.substr(program + kProgramSha256.size());
  if (source.is_archive() && program == std::string_view::npos) {
    return invalid(text, "an archive needs the checksum of the program in it, too", kGrammar);
  }
  if (!is_sha256_hex(source.program_sha256))
    return invalid(text, "the program's checksum is not 64 hex digits", kGrammar);
  if (!source.is_archive() && source.program_sha256 != source.sha256)
    return invalid(text, "the URL is the program itself: give one checksum only", kGrammar);
  return source;
}

std::string checksum_argument(const RuntimeSource& source) {
  return fmt::format("{}{}{}=sha256:{}", source.file, source.architecture.empty() ? "" : "@",
                     source.architecture, source.program_sha256);
}

Result<RuntimeSource> parse_checksum_argument(std::string_view text) {
  constexpr std::string_view kGrammar = "FILE[@ARCHITECTURE]=sha256:HEX";
  constexpr std::string_view kValue = "=sha256:";
  const std::size_t equals = text.find(kValue);
  if (equals == std::string_view::npos) return invalid(text, "no checksum", kGrammar);
  RuntimeSource source = HANGAR_TRY(parse_name(text, text.substr(0, equals), kGrammar));
  source.program_sha256 = text.substr(equals + kValue.size());
  if (!is_sha256_hex(source.program_sha256))
    return invalid(text, "the checksum is not 64 hex digits", kGrammar);
  return source;
}

Result<std::vector<RuntimeSource>> choose_sources(std::span<const RuntimeSource> all,
                                                  std::string_view architecture) {
  std::map<std::string_view, const RuntimeSource*> chosen;
  for (const RuntimeSource& source : all) {
    const RuntimeSource*& best = chosen[source.file];
    if (!source.architecture.empty() && source.architecture != architecture) continue;
    if (best != nullptr && best->architecture == source.architecture) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("{} is wanted twice for {}", source.file,
                              source.architecture.empty() ? "any" : source.architecture));
    }
    if (best == nullptr || best->architecture.empty()) best = &source;
  }
  std::vector<RuntimeSource> result;
  for (const auto& [file, source] : chosen) {
    if (source == nullptr)
      return fail(ErrorKind::InvalidInput,
                  fmt::format("{} is given for other architectures than {}", file, architecture));
    result.push_back(*source);
  }
  return result;
}

}  // namespace hangar::node_install
