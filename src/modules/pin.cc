#include "modules/pin.h"

#include "base/digest.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "modules/reference.h"
#include "modules/supply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hangar::modules {

namespace {

// As in golang.org/x/mod/semver, but with or without the leading v: 1, v1.2, 1.2.3-rc.1+build.
bool is_semver(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  const std::size_t build = text.find('+');
  const std::size_t prerelease = text.substr(0, build).find('-');
  const std::string_view version = text.substr(0, std::min(build, prerelease));
  const auto words_are_valid = [](std::string_view words, bool numbers_only) {
    while (true) {
      const std::size_t dot = words.find('.');
      const std::string_view word = words.substr(0, dot);
      if (word.empty()) return false;
      const bool is_number = std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
      if (numbers_only && (!is_number || (word.size() > 1 && word.front() == '0'))) return false;
      if (dot == std::string_view::npos) return true;
      words.remove_prefix(dot + 1);
    }
  };
  if (std::ranges::count(version, '.') > 2 || !words_are_valid(version, true)) return false;
  // The short forms have no suffix.
  const bool has_suffix = version.size() != text.size();
  if (has_suffix && std::ranges::count(version, '.') != 2) return false;
  if (prerelease != std::string_view::npos) {
    const std::string_view words =
        text.substr(prerelease + 1, build == std::string_view::npos ? std::string_view::npos
                                                                    : build - prerelease - 1);
    if (!words_are_valid(words, false)) return false;
  }
  return build == std::string_view::npos || words_are_valid(text.substr(build + 1), false);
}

std::string look_of(const std::string& listener) {
  return fmt::format("{} look", listener);
}

}  // namespace

Upgrade upgrade_of(const Reference& reference, std::string_view sha256) {
  if (reference.is_pinned() || expected_sha256(reference, sha256)) return Upgrade::Never;
  // http has no convention for mutable content, so a URL is expected to keep its content.
  if (std::holds_alternative<HttpSource>(reference.source())) return Upgrade::Deliberate;
  const auto* const oci = std::get_if<OciSource>(&reference.source());
  return oci != nullptr && is_semver(oci->tag) ? Upgrade::Deliberate : Upgrade::Followed;
}

std::string definition_of(const Source& source) {
  return sha256_hex(fmt::format("{}\n{}", source.reference, source.sha256));
}

Pin next_pin(const std::optional<Pin>& before, const Source& source, const Supplied& supplied) {
  Pin pin{.definition = definition_of(source),
          .sha256 = supplied.sha256,
          .resolved = supplied.resolved,
          .replaces = {}};
  if (before) pin.replaces = before->sha256 == pin.sha256 ? before->replaces : before->sha256;
  return pin;
}

std::optional<Supplied> PinnedAsking::ask(Supply& supply, Wish wish, const std::optional<Pin>& pin,
                                          std::string_view definition, Supply::Listener listener) {
  const Result<Reference> reference = Reference::parse(wish.module.reference);
  // The supply reports a reference that cannot be parsed.
  const Upgrade upgrade =
      reference ? upgrade_of(*reference, wish.module.sha256) : Upgrade::Followed;
  is_pinned_ = pin && upgrade != Upgrade::Followed && pin->definition == definition_of(wish.module);
  const bool was_looking = std::exchange(is_looking_, is_pinned_ && upgrade == Upgrade::Deliberate);
  if (is_looking_) {
    Wish look = wish;
    look.is_look = true;
    const std::optional<Supplied> seen = look_.ask(
        supply, look, definition, {.name = look_of(listener.name), .changed = listener.changed});
    if (seen) offered_sha256_ = seen->sha256 == pin->sha256 ? std::string() : seen->sha256;
  } else {
    if (was_looking) supply.leave(look_of(listener.name));
    look_ = {};
    offered_sha256_.clear();
  }
  if (is_pinned_) wish.pinned_sha256 = pin->sha256;
  std::optional<Supplied> supplied = asking_.ask(supply, wish, definition, std::move(listener));
  if (supplied && is_pinned_ && supplied->resolved.empty()) supplied->resolved = pin->resolved;
  if (supplied && !is_pinned_ && upgrade == Upgrade::Deliberate) {
    // The module is about to be pinned, and the source has just served it.
    is_looking_ = true;
    look_.put_off(supply, definition);
  }
  return supplied;
}

void PinnedAsking::leave(Supply& supply, const std::string& listener) {
  supply.leave(listener);
  supply.leave(look_of(listener));
}

Duration PinnedAsking::again_in(Instant now) const {
  const Duration again = asking_.again_in(now);
  return is_looking_ ? std::min(again, look_.again_in(now)) : again;
}

}  // namespace hangar::modules
