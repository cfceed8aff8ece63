// Plans the effects of one evaluation on the cluster, before anything is sent.
//
// The heart is apply_need(): an unchanged evaluation sends no request. Server-side apply of the
// same document by the same manager changes nothing unless another writer has changed an applied
// field, and the cache shows whether one has. A comparison "live contains every desired field"
// would be wrong in both directions: atomic maps (selectors), defaulted and normalised values
// (quantities), and the schema is not at hand. Instead, the document and the answer of the last
// apply are remembered as two digests, and the present ones are compared with them. The digest of
// the live object covers:
//   - metadata: only the fields that we apply (all are granular: labels and annotations by key,
//     ownerReferences by uid, finalizers by value), so that others may add theirs; and the mode of
//     an override;
//   - status: not at all, unless we apply one;
//   - everything else: as a whole.
// So any doubt costs one apply, and so does the first evaluation after a start. The answer renews
// the digests: a change by another writer costs at most one request.
#pragma once

#include "airways/ownership.h"
#include "airways/resource_ref.h"
#include "airways/terms.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/predicates.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

// The first half of a SHA-256.
using Digest = std::array<std::uint64_t, 2>;

// A successful apply of one resource. Small, because it is kept for every resource of every
// instance.
struct Applied {
  Digest desired_digest = {};  // Of the document that was sent.
  Digest live_digest = {};     // Of the answer, as described above.
  std::string uid;
  std::string resource_version;
};
// `answer` is what the server returned for the apply of `desired`.
[[nodiscard]] Applied applied_of(const json::Value& desired, const json::Value& answer);

using reconcile::is_older;

enum class ApplyNeed : std::uint8_t {
  None,            // Applying would change nothing.
  Missing,         // It does not exist.
  NeverApplied,    // The last apply is not known (first run after a start).
  DesiredChanged,  // The flight prints another document.
  LiveChanged,     // Another writer changed it, or it is a new object of that name.
  Terminating,     // It is being deleted: apply when it is gone.
};
// `live`: as the cache has it (null: it does not exist), in the version of `desired`: another
// version of the same object has other fields, and would be applied again and again. None if the
// cache still shows a state from before the last apply.
[[nodiscard]] ApplyNeed apply_need(const json::Value& desired, const kube::Object* live,
                                   const Applied* last);

// Whether a resource differs from what our last apply left. `child`: from the cache, null if it has
// none; `applied`: null if the last apply is not known.
[[nodiscard]] bool is_news(const kube::Object* child, const Applied* applied);
// True if the cache lags behind our last apply: then `live` has the readiness from before.
[[nodiscard]] bool is_from_before(const kube::Object& live, const Applied* applied);

struct ApplyStep {
  std::size_t index = 0;  // In the stage.
  ApplyNeed need = ApplyNeed::None;
};
struct StagePlan {
  std::vector<ApplyStep> apply;          // Those that need a request.
  std::vector<std::size_t> terminating;  // Applied once they are gone.
};
// The known state of one resource of the stage.
struct LiveFact {
  kube::ObjectPtr live;              // Null: it does not exist.
  const Applied* applied = nullptr;  // Null: never applied by this process.
};
// `facts`: one for each resource of the stage, from the moment when the stage begins. InvalidInput
// if a resource may not be taken over; the message names each of them.
[[nodiscard]] Result<StagePlan> plan_stage(const Stage& stage, std::span<const LiveFact> facts,
                                           const Release& release, Adoption adoption);

// The resources of a stage that are sent as a dry run first, so that an invalid one does not leave
// half a stage behind.
enum class Rehearse : std::uint8_t {
  Nothing,
  News,  // Those that the server has not accepted from this process; a single one is not rehearsed.
  All,   // For a process that has applied nothing before: a refusal leaves no revision, either.
};
[[nodiscard]] std::vector<ApplyStep> rehearsal_of(const StagePlan& plan, Rehearse rehearse);

struct PruneStep {
  ResourceRef ref;
  kube::GroupVersionKind gvk;  // As it was applied.
  bool orphan = false;         // Orphan instead of delete: CRDs and Namespaces by default.
};
// Resources that are in `previous` and not in `next`, in reverse order of the stages: those of one
// inner list are gone before the next one begins. An empty `next` removes the release.
[[nodiscard]] std::vector<std::vector<PruneStep>> plan_prune(const Stages& previous,
                                                             const Stages& next,
                                                             const PruneOptions& options);

enum class PruneAction : std::uint8_t {
  Leave,   // Gone, or no longer owned.
  Wait,    // Owned and being deleted: wait until it is gone.
  Delete,  // In the foreground, with the uid of `live` as precondition.
  Orphan,  // Apply orphan_patch().
};
// `live`: null if it does not exist.
[[nodiscard]] PruneAction prune_action(const PruneStep& step, const json::Value* live,
                                       const Release& release);

}  // namespace hangar::airways
