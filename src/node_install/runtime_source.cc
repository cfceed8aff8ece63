#include "node_install/runtime_source.h"

#include "base/result.h"
#include "node_install/runtimes.h"
#include "node_install/sha256.h"

#include <fmt/format.h>

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

Result<RuntimeSource> parse_runtime_source(std::string_view text) {
  const auto invalid = [&](std::string_view what) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{}: {}; write FILE[@ARCHITECTURE]=URL#sha256:HEX", text, what));
  };
  const std::size_t equals = text.find('=');
  const std::size_t hash = text.rfind("#sha256:");
  if (equals == std::string_view::npos || hash == std::string_view::npos || hash < equals)
    return invalid("no URL with a checksum");
  const std::string_view name = text.substr(0, equals);
  const std::size_t at = name.find('@');
  RuntimeSource source{
      .file = std::string(name.substr(0, at)),
      .architecture = std::string(at == std::string_view::npos ? "" : name.substr(at + 1)),
      .url = std::string(text.substr(equals + 1, hash - equals - 1)),
      .sha256 = std::string(text.substr(hash + std::string_view("#sha256:").size()))};
  HANGAR_TRY(handler_of(source.file, ""));
  if (at != std::string_view::npos && source.architecture != "amd64" &&
      source.architecture != "arm64") {
    return invalid("the architecture is amd64 or arm64");
  }
  if (!source.url.starts_with("https://") && !source.url.starts_with("http://"))
    return invalid("the URL is not http or https");
  if (!is_sha256(source.sha256)) return invalid("the checksum is not 64 hex digits");
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
      return fail(ErrorKind::InvalidInput, fmt::format("{} has no URL for {}", file, architecture));
    result.push_back(*source);
  }
  return result;
}

}  // namespace hangar::node_install
