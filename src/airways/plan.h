// What one evaluation does to the cluster, decided before anything is sent.
//
// The heart is apply_need(): an unchanged evaluation costs no request. Server-side apply of the
// same document by the same manager changes nothing unless somebody touched what we apply, and the
// cache shows us whether anybody did. A comparison "live contains every desired field" is not used:
// atomic maps (selectors), defaulted and normalised values (quantities) make it wrong in both
// directions, and the schema is not at hand. Instead the answer of our last apply is remembered as
// two digests, and live is compared with that:
//   - metadata: only what we apply of it (ours are all granular: labels and annotations by key,
//     ownerReferences by uid, finalizers by value), so that others may add theirs;
//   - status: not at all, unless we apply one;
//   - everything else: whole.
// So: any doubt, and the first evaluation after a start, is one apply; after its answer the
// digests are fresh again, so a change by others costs at most one request.
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

// Memory of a successful apply of one resource. Small: kept for every resource of every instance.
struct Applied {
  Digest desired_digest = {};  // Of the document we sent.
  Digest live_digest = {};     // Of the answer, as described above.
  std::string uid;
  std::string resource_version;
};
// `answer` is what the server returned for the apply of `desired`.
[[nodiscard]] Applied applied_of(const json::Value& desired, const json::Value& answer);

using reconcile::is_older;

enum class ApplyNeed : std::uint8_t {
  None,            // Applying would change nothing.
  Missing,         // It is not there.
  NeverApplied,    // We do not know what our last apply did (the first run after a start).
  DesiredChanged,  // The flight wants something else.
  LiveChanged,     // Somebody changed it, or it is another object of the same name.
  Terminating,     // It is being deleted: apply when it is gone.
};
// `live` as the cache has it (null: not there), in the version of `desired`: another version of the
// same object has other fields, and would be applied again and again. A cache that still shows a
// state before our last apply knows nothing newer: None.
[[nodiscard]] ApplyNeed apply_need(const json::Value& desired, const kube::Object* live,
                                   const Applied* last);

struct ApplyStep {
  std::size_t index = 0;  // In the stage.
  ApplyNeed need = ApplyNeed::None;
};
struct StagePlan {
  std::vector<ApplyStep> apply;  // What needs a request: everything but None and Terminating.
  std::vector<std::size_t> terminating;  // What must be gone before it can be applied.
};
// What the caller knows of one resource of the stage.
struct LiveFact {
  kube::ObjectPtr live;              // Null: not there.
  const Applied* applied = nullptr;  // Null: never applied by this process.
};
// `facts` has one entry for each resource of the stage, of the moment the stage begins.
// Errors: InvalidInput when one of them may not be taken over (the message names each).
[[nodiscard]] Result<StagePlan> plan_stage(const Stage& stage, std::span<const LiveFact> facts,
                                           const Release& release, Adoption adoption);

struct PruneStep {
  ResourceRef ref;
  kube::GroupVersionKind gvk;  // As it was applied.
  bool orphan = false;         // Let go instead of delete: CRDs and Namespaces, unless asked for.
};
// What `previous` has and `next` has not, in reverse order of the stages: each inner list is gone
// before the next one begins. An empty `next` removes the release.
[[nodiscard]] std::vector<std::vector<PruneStep>> plan_prune(const Stages& previous,
                                                             const Stages& next,
                                                             const PruneOptions& options);

enum class PruneAction : std::uint8_t {
  Leave,   // Gone, or not ours any more.
  Wait,    // Ours, and being deleted: wait until it is gone.
  Delete,  // In the foreground, with the uid of `live` as precondition.
  Orphan,  // Apply orphan_patch().
};
// `live`: null when it is not there.
[[nodiscard]] PruneAction prune_action(const PruneStep& step, const json::Value* live,
                                       const Release& release);

}  // namespace hangar::airways
