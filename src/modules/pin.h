// What happens to the users of a module when its source serves other bytes under the same
// reference. One policy for every feature (docs/operating/modules.md):
//
// - A reference that contains a digest or checksum never means other bytes.
// - A URL and a version tag promise to mean the same for ever. The first bytes that they gave are
//   pinned: users of the module keep them. Other bytes are reported, and a person has to accept
//   them with another reference or a checksum.
// - A ConfigMap, a file, and a tag that is not a version may change: hangar follows them.
//
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
  Deliberate,  // Only by the author of the definition.
  Followed,    // When the source is next asked.
};
[[nodiscard]] Upgrade upgrade_of(const Reference& reference, std::string_view sha256);

// A text that differs when the author changes the source: another reference or checksum. Contains
// no secret of the reference.
[[nodiscard]] std::string definition_of(const Source& source);

struct Pin {
  std::string definition;  // definition_of() the source that gave the module.
  std::string sha256;      // Hex, of the uncompressed module.
  std::string resolved;    // The reference, pinned by digest where possible.
  std::string replaces;    // The digest that was pinned before; empty: none.

  bool operator==(const Pin&) const = default;
};

// The pin once `supplied` has arrived.
[[nodiscard]] Pin next_pin(const std::optional<Pin>& before, const Source& source,
                           const Supplied& supplied);

// Like Asking, for one definition whose module may be pinned.
class PinnedAsking {
 public:
  // As Asking::ask(). If `pin` is of the same source, asks for the pinned module, and also, every
  // Supply::recheck(), whether the source still serves it. `wish` must have no digest yet.
  [[nodiscard]] std::optional<Supplied> ask(Supply& supply, Wish wish,
                                            const std::optional<Pin>& pin,
                                            std::string_view definition, Supply::Listener listener);
  static void leave(Supply& supply, const std::string& listener);

  // True when the last ask() was for the pinned module.
  [[nodiscard]] bool is_pinned() const { return is_pinned_; }
  // The digest that the source serves now instead of the pinned one; empty: none is known.
  [[nodiscard]] const std::string& offered_sha256() const { return offered_sha256_; }
  // True until the source has answered, for the first time since the host started, what it serves.
  [[nodiscard]] bool is_unasked() const { return is_looking_ && !look_.is_known(); }
  // Why the attempt to ask the source whether it still serves the pinned module failed.
  [[nodiscard]] std::optional<Error> look_error() const { return look_.error(); }

  // As for Asking.
  void forget() { asking_.forget(); }
  [[nodiscard]] std::string waits_for() const { return asking_.waits_for(); }
  [[nodiscard]] std::optional<Error> error() const { return asking_.error(); }
  [[nodiscard]] bool is_quiet(Instant now) const { return asking_.is_quiet(now); }
  [[nodiscard]] Duration again_in(Instant now) const;

 private:
  Asking asking_;  // For the module to run.
  Asking look_;    // For what the source serves, while a module is pinned.
  std::string offered_sha256_;
  bool is_pinned_ = false;
  bool is_looking_ = false;
};

}  // namespace hangar::modules
