// The names that provisioning uses in the API: those of KWasm's operator, which existing clusters
// and manifests use, and hangar's own where KWasm has none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::nodes {

// KWasm's. A user requests provisioning with the annotation; the label says that the node is
// provisioned, and its value is the node's name.
inline constexpr std::string_view kWishAnnotation = "kwasm.sh/kwasm-node";
inline constexpr std::string_view kPublishedLabel = "kwasm.sh/kwasm-provisioned";
inline constexpr std::string_view kJobLabel = "kwasm.sh/job";

// Set by users: skip this node; retry this node now.
inline constexpr std::string_view kSkipAnnotation = "nodes.hangar.dev/skip";
inline constexpr std::string_view kRetryAnnotation = "nodes.hangar.dev/retry";

// Has the same value on every provisioned node, as the nodeSelector of a RuntimeClass needs it.
inline constexpr std::string_view kProvisionedLabel = "nodes.hangar.dev/provisioned";

// The state of a node, kept on the node.
inline constexpr std::string_view kPhaseAnnotation = "nodes.hangar.dev/phase";
inline constexpr std::string_view kActionAnnotation = "nodes.hangar.dev/action";
inline constexpr std::string_view kAttemptAnnotation = "nodes.hangar.dev/attempt";
inline constexpr std::string_view kFailuresAnnotation = "nodes.hangar.dev/failures";
inline constexpr std::string_view kSinceAnnotation = "nodes.hangar.dev/since";
inline constexpr std::string_view kVersionAnnotation = "nodes.hangar.dev/version";
inline constexpr std::string_view kTargetAnnotation = "nodes.hangar.dev/target";
inline constexpr std::string_view kErrorAnnotation = "nodes.hangar.dev/last-error";

// On a Job and its pods: its action ("install"), and the attempt on its node.
inline constexpr std::string_view kJobActionLabel = "nodes.hangar.dev/action";
inline constexpr std::string_view kJobAttemptLabel = "nodes.hangar.dev/attempt";

inline constexpr std::string_view kConditionType = "WasmProvisioned";

// On objects that hangar may change and delete.
inline constexpr std::string_view kOwnerLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kOwner = "hangar-nodes";

// The ConfigMap that names the nodes in progress.
inline constexpr std::string_view kRecordName = "hangar-nodes";

inline constexpr std::string_view kFieldManager = "hangar-nodes";

// The work of a Job on a node.
enum class Action : std::uint8_t { Install, Uninstall, Probe };
[[nodiscard]] std::string_view name_of(Action action);

// "<node>-provision-kwasm", as published. Names of Jobs and values of labels have at most 63
// characters: a longer node name is cut and made unique again by a hash of the whole.
[[nodiscard]] std::string job_name(std::string_view node, Action action);
[[nodiscard]] std::string label_value(std::string_view node);

// Eight hex digits, the same on every machine and in every version of hangar. It does not resist an
// attacker who searches for a collision.
[[nodiscard]] std::string short_hash(std::string_view text);

}  // namespace hangar::nodes
