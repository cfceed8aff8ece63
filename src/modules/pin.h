// What becomes of those that run a module when its source serves other bytes under the same
// reference: one policy for every feature (docs/operating/modules.md).
//
//   - A reference that says which bytes it means (a digest, a checksum) never means others.
//   - A URL and a version tag promise to mean the same for ever. What they gave first is pinned:
//     its users go on with it, and other bytes are news that a person has to act upon, by another
//     reference or a checksum.
//   - A ConfigMap, a file, and a tag that is not a version are there to be changed: what they mean
//     is followed.
// A feature keeps the Pin where it survives a restart (a status), and a copy of the bytes where it
// can (archive/).
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "modules/reference.h"
#include "modules/supply.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::modules {

enum class Upgrade : std::uint8_t {
  Never,       // There is nothing to upgrade to.
  Deliberate,  // By the author of the definition only.
  Followed,    // At the next look.
};
[[nodiscard]] Upgrade upgrade_of(const Reference& reference, std::string_view sha256);

// Another text for a source that its author has made another one: a reference or a checksum that
// was changed. Tells nothing of secrets in the reference.
[[nodiscard]] std::string definition_of(const Source& source);

struct Pin {
  std::string definition;  // definition_of() the source that gave it.
  std::string sha256;      // Hex, of the uncompressed module.
  std::string resolved;    // The reference, pinned by digest where that can be.
  std::string replaces;    // The digest that was pinned before; empty: none was.

  bool operator==(const Pin&) const = default;
};

// What is pinned once `supplied` is there.
[[nodiscard]] Pin next_pin(const std::optional<Pin>& before, const Source& source,
                           const Supplied& supplied);

// As Asking, of one definition whose module may be pinned.
class PinnedAsking {
 public:
  // As Asking::ask(). A pin of the same source is what is asked for, and beside it, every
  // Supply::recheck(), whether the source still serves that. `wish` has no digest yet.
  [[nodiscard]] std::optional<Supplied> ask(Supply& supply, Wish wish,
                                            const std::optional<Pin>& pin,
                                            std::string_view definition, Supply::Listener listener);
  static void leave(Supply& supply, const std::string& listener);

  // Whether the last ask() was for what is pinned.
  [[nodiscard]] bool is_pinned() const { return is_pinned_; }
  // The digest of what the source serves now in place of what is pinned; empty: none that we know.
  [[nodiscard]] const std::string& offered_sha256() const { return offered_sha256_; }
  // Whether the source is still to be asked what it serves, for the first time since the host
  // began.
  [[nodiscard]] bool is_unasked() const { return is_looking_ && !look_.is_known(); }
  // Why the source could not be asked whether it still serves what is pinned.
  [[nodiscard]] std::optional<Error> look_error() const { return look_.error(); }

  // As of Asking.
  void forget() { asking_.forget(); }
  [[nodiscard]] std::string waits_for() const { return asking_.waits_for(); }
  [[nodiscard]] std::optional<Error> error() const { return asking_.error(); }
  [[nodiscard]] bool is_quiet(Instant now) const { return asking_.is_quiet(now); }
  [[nodiscard]] Duration again_in(Instant now) const;

 private:
  Asking asking_;  // For what to run.
  Asking look_;    // For what the source serves, while something is pinned.
  std::string offered_sha256_;
  bool is_pinned_ = false;
  bool is_looking_ = false;
};

}  // namespace hangar::modules
