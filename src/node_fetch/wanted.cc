#include "node_fetch/wanted.h"

#include "base/result.h"
#include "node_install/runtimes.h"
#include "node_install/sha256.h"

#include <fmt/format.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_fetch {

bool Wanted::is_archive() const {
  const std::string_view path = std::string_view(url).substr(0, url.find('?'));
  return path.ends_with(".tar.gz") || path.ends_with(".tgz");
}

Result<Wanted> parse_wanted(std::string_view text) {
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
  Wanted wanted{
      .file = std::string(name.substr(0, at)),
      .architecture = std::string(at == std::string_view::npos ? "" : name.substr(at + 1)),
      .url = std::string(text.substr(equals + 1, hash - equals - 1)),
      .sha256 = std::string(text.substr(hash + std::string_view("#sha256:").size()))};
  HANGAR_TRY(node_install::handler_of(wanted.file, ""));
  if (at != std::string_view::npos && wanted.architecture != "amd64" &&
      wanted.architecture != "arm64") {
    return invalid("the architecture is amd64 or arm64");
  }
  if (!wanted.url.starts_with("https://") && !wanted.url.starts_with("http://"))
    return invalid("the URL is not http or https");
  if (!node_install::is_sha256(wanted.sha256)) return invalid("the checksum is not 64 hex digits");
  return wanted;
}

Result<std::vector<Wanted>> choose(std::span<const Wanted> all, std::string_view architecture) {
  std::map<std::string_view, const Wanted*> chosen;
  for (const Wanted& wanted : all) {
    const Wanted*& best = chosen[wanted.file];
    if (!wanted.architecture.empty() && wanted.architecture != architecture) continue;
    if (best != nullptr && best->architecture == wanted.architecture) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("{} is wanted twice for {}", wanted.file,
                              wanted.architecture.empty() ? "any" : wanted.architecture));
    }
    if (best == nullptr || best->architecture.empty()) best = &wanted;
  }
  std::vector<Wanted> result;
  for (const auto& [file, wanted] : chosen) {
    if (wanted == nullptr)
      return fail(ErrorKind::InvalidInput, fmt::format("{} has no URL for {}", file, architecture));
    result.push_back(*wanted);
  }
  return result;
}

}  // namespace hangar::node_fetch
