// A release's history: one Secret a revision, exactly as yoke stores it (the JSON in it to the
// byte), so that either reads what the other has written.
//
// A revision is written before its resources are applied, without being active (active-at is Go's
// zero time), and activated after the prune. A host that dies in between finds it again: its
// resources belong to the inventory, so that nothing is forgotten.
#pragma once

#include "airways/limits.h"
#include "airways/resource_ref.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

inline constexpr std::string_view kRevisionKindLabel = "internal.yoke/kind";
inline constexpr std::string_view kRevisionReleaseLabel = "internal.yoke/release";
inline constexpr std::string_view kReleaseNameAnnotation = "internal.yoke/release-name";

// Where the module came from.
struct Source {
  std::string url;
  std::string checksum;  // sha1 of the module, hex.
  bool operator==(const Source&) const = default;
};

struct Revision {
  std::string secret;      // Name of the Secret.
  std::string namespace_;  // Of the Secret.
  std::string release;
  Source source;
  WallTime created_at{};
  std::optional<WallTime>
      active_at;  // Nothing: its resources may be applied, but it never became active.
  std::size_t resource_count = 0;
};

// "internal.yoke/kind=revision": every Secret of some release's history.
[[nodiscard]] std::string revision_selector();
// The same and "internal.yoke/release=<sha1 of the name>": every Secret of a release's history.
[[nodiscard]] std::string history_selector(std::string_view release);
// As older versions of yoke labelled it; empty when the name is no label value.
[[nodiscard]] std::string deprecated_history_selector(std::string_view release);
// Merge patch from the older label to the present one; nothing when it is there.
[[nodiscard]] std::optional<json::Value> migration_patch(const json::Value& secret,
                                                         std::string_view release);

// InvalidInput when a Secret is no revision.
[[nodiscard]] Result<Revision> revision_of(const json::Value& secret);
// When it was created and activated, for people: "2026-04-08 12:00:00", in the zone in which
// whoever wrote it was.
struct RevisionTimes {
  std::string created_at;
  std::string active_at;
};
[[nodiscard]] RevisionTimes times_of(const json::Value& secret);
struct UnpackedRevision {
  Stages stages;
  std::uint64_t bytes = 0;  // Of their text.
};
// data.resources, gzip or plain. InvalidInput, LimitExceeded (decompressed size), Corrupt.
[[nodiscard]] Result<UnpackedRevision> unpack(const json::Value& secret,
                                              std::uint64_t bytes_max = limits::kRevisionBytesMax);

// The Secret to create. Its name is a digest of the content and created_at. LimitExceeded when the
// resources do not fit into a Secret, with what to do.
[[nodiscard]] Result<json::Value> secret_of(std::string_view release, std::string_view namespace_,
                                            const Stages& stages, const Source& source,
                                            WallTime created_at,
                                            std::optional<WallTime> active_at = std::nullopt);
// Merge patch that makes a revision the active one.
[[nodiscard]] json::Value activation_patch(WallTime now);

// The history in memory, kept by the instance's controller between evaluations.
struct History {
  std::vector<Revision> revisions;  // By created_at; people count them from one.

  void add(Revision revision);
  // The one activated last; null when none is.
  [[nodiscard]] const Revision* active() const;
  // What people call the active one; 1 when none is.
  [[nodiscard]] std::size_t active_number() const;
  // Revisions that never became active and are newer than the active one: an apply was interrupted.
  [[nodiscard]] std::vector<const Revision*> interrupted() const;
  // Names of the Secrets beyond `count_max` (nothing: unlimited), those activated longest ago first
  // to go; never the active one.
  [[nodiscard]] std::vector<std::string> beyond(std::optional<std::uint32_t> count_max) const;
};

// Whether a release was made by other bytes of the same name. For a module that nobody has taken
// over deliberately (modules/pin.h), as that of a release that another program made.
// InvalidInput: `module "<url>" has changed since last use: got "<sha1>" but wanted "<sha1>"`.
[[nodiscard]] Result<> check_pinned(const History& history, const Source& source);

// Same stages, same resources, same values: no new revision.
[[nodiscard]] bool same_resources(const Stages& left, const Stages& right);

// Whether every resource of `stages` is one of `by` too, whatever their contents.
[[nodiscard]] bool is_covered(const Stages& stages, const Stages& by);

// Everything that may be in the cluster: the stages of the active revision and of interrupted ones.
[[nodiscard]] Stages merge_inventory(Stages active, const std::vector<Stages>& interrupted);

}  // namespace hangar::airways
