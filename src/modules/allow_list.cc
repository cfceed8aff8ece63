#include "modules/allow_list.h"

#include "base/result.h"
#include "modules/internal/percent.h"
#include "modules/reference.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::modules {

namespace {

constexpr std::string_view kAuthority = "://";

bool matches(const std::string& glob, const std::string& text) {
  return ::fnmatch(glob.c_str(), text.c_str(), FNM_PATHNAME) == 0;
}

// Without this, a star could match the end of a path and the beginning of a query: the glob
// "https://host/*/stable.wasm" would allow https://host/other?/stable.wasm.
bool matches_path(const std::string& glob, const std::string& url) {
  return glob.contains('?') || matches(glob, url.substr(0, url.find('?')));
}

// A star would match what a server takes for a slash or for the way up.
bool has_plain_path(std::string_view url) {
  const std::string_view whole = url.substr(0, url.find('?'));
  const std::size_t host = whole.find(kAuthority) + kAuthority.size();
  return internal::plain_path(whole.substr(std::min(whole.find('/', host), whole.size())))
      .has_value();
}

// A colon after the last slash begins a tag; one before it, a port.
std::string without_tag_and_query(std::string_view glob) {
  if (!glob.starts_with("oci://")) return std::string(glob.substr(0, glob.find('?')));
  glob = glob.substr(0, glob.find('@'));
  const std::size_t colon = glob.find(':', glob.rfind('/'));
  return std::string(glob.substr(0, colon));
}

}  // namespace

AllowList AllowList::of_places() const {
  std::vector<std::string> places = globs_;
  for (const std::string& glob : globs_)
    places.push_back(without_tag_and_query(glob));
  return AllowList(std::move(places));
}

Result<> AllowList::check(const Reference& reference) const {
  if (globs_.empty()) return {};
  const std::string text = reference.meaning();
  const bool is_url = text.contains(kAuthority);  // Not a path on the command line.
  const bool is_named = std::ranges::find(globs_, text) != globs_.end();
  const bool is_allowed = is_named || std::ranges::any_of(globs_, [&](const std::string& glob) {
                            return matches(glob, text) && (!is_url || matches_path(glob, text));
                          });
  const bool is_clear = is_named || !is_url || has_plain_path(text);
  // fnmatch() stops at a null byte.
  if (is_allowed && is_clear && !text.contains('\0')) return {};
  return fail(ErrorKind::InvalidInput,
              fmt::format("module \"{}\" not allowed{}", reference.display(),
                          is_allowed && !is_clear
                              ? ": its path can be read in two ways: write it without escaped "
                                "slashes, backslashes, . or .. and doubled slashes"
                              : ""));
}

}  // namespace hangar::modules
