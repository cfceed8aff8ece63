// A release's history: one Secret for each revision, exactly as yoke stores it (byte for byte, in
// its JSON), so that each host reads the other's.
//
// A revision is written before its resources are applied, and is not active yet (active-at is Go's
// zero time); after the prune it is activated. After a crash in between, the next host finds it:
// its resources belong to the inventory, so that none is forgotten.
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

// The origin of a module.
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
      active_at;  // std::nullopt: it was never active, but its resources may be applied.
  std::size_t resource_count = 0;
};

// "internal.yoke/kind=revision": the revisions of all releases.
[[nodiscard]] std::string revision_selector();
// The same and "internal.yoke/release=<sha1 of the name>": the revisions of one release.
[[nodiscard]] std::string history_selector(std::string_view release);
// For the labels of older versions of yoke; empty if the name is not a valid label value.
[[nodiscard]] std::string deprecated_history_selector(std::string_view release);
// A merge patch from the older label to the present one; nothing if that is there.
[[nodiscard]] std::optional<json::Value> migration_patch(const json::Value& secret,
                                                         std::string_view release);

// InvalidInput if the Secret is not a revision.
[[nodiscard]] Result<Revision> revision_of(const json::Value& secret);
// When a revision was created and activated, for display: "2026-04-08 12:00:00", in the time zone
// of its writer.
struct RevisionTimes {
  std::string created_at;
  std::string active_at;
};
[[nodiscard]] RevisionTimes times_of(const json::Value& secret);
struct UnpackedRevision {
  Stages stages;
  std::uint64_t bytes = 0;  // Of their text.
};
// Unpacks data.resources, gzip or plain. InvalidInput, LimitExceeded (decompressed size, memory),
// Corrupt.
[[nodiscard]] Result<UnpackedRevision> unpack(const json::Value& secret,
                                              std::uint64_t bytes_max = limits::kRevisionBytesMax);

// The Secret to create. Its name is a digest of the content and created_at. LimitExceeded if the
// resources do not fit into a Secret, or could not be read back; the message says what to do.
[[nodiscard]] Result<json::Value> secret_of(std::string_view release, std::string_view namespace_,
                                            const Stages& stages, const Source& source,
                                            WallTime created_at,
                                            std::optional<WallTime> active_at = std::nullopt);
// A merge patch that makes a revision the active one.
[[nodiscard]] json::Value activation_patch(WallTime now);

// The revisions of a release, without their resources.
struct History {
  std::vector<Revision> revisions;  // By created_at; users count them from one.

  void add(Revision revision);
  // The revision activated last; null if none is.
  [[nodiscard]] const Revision* active() const;
  // The number of the active one for users; 1 if none is active.
  [[nodiscard]] std::size_t active_number() const;
  // Revisions that never became active and are newer than the active one: an apply was interrupted.
  [[nodiscard]] std::vector<const Revision*> interrupted() const;
  // Names of the Secrets beyond `count_max` (nothing: unlimited): those activated longest ago. The
  // active revision and interrupted ones stay.
  [[nodiscard]] std::vector<std::string> beyond(std::optional<std::uint32_t> count_max) const;
};

// An error if other bytes of the same URL have made a revision, in this host or in another program.
// For modules that nobody has approved (modules/pin.h). InvalidInput: `module "<url>" has changed
// since last use: got "<sha1>" but wanted "<sha1>"`.
[[nodiscard]] Result<> check_pinned(const History& history, const Source& source);

// Whether stages, resources and values are the same: then there is no new revision.
[[nodiscard]] bool same_resources(const Stages& left, const Stages& right);

// Whether every resource of `stages` is in `by`, too, whatever its content.
[[nodiscard]] bool is_covered(const Stages& stages, const Stages& by);

// All resources that may be in the cluster: the stages of the active revision and of interrupted
// ones.
[[nodiscard]] Stages merge_inventory(Stages active, const std::vector<Stages>& interrupted);

}  // namespace hangar::airways
