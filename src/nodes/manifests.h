// The objects that provisioning creates: Jobs, RuntimeClasses, the record of a rollout, and the
// changes of a Node. Pure functions from values to documents.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "nodes/limits.h"
#include "nodes/names.h"
#include "nodes/node_view.h"
#include "nodes/rollout.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::nodes {

[[nodiscard]] kube::Resource runtime_class_resource();

struct RuntimeClass {
  std::string name;
  std::string handler;  // The name of the runtime in containerd's configuration.
  bool operator==(const RuntimeClass&) const = default;
};
// Parses "wasmtime", or "fast=wasmtime" for a class whose name differs from its
// handler. InvalidInput.
[[nodiscard]] Result<RuntimeClass> parse_runtime_class(std::string_view text);

// The version that a node is provisioned with: the installer's image and, if runtimes are fetched,
// a hash of their names and checksums ("image+runtimes.1a2b3c4d"). Their URLs do not count.
[[nodiscard]] std::string version_of(std::string_view image, std::vector<std::string> runtimes);

struct JobOptions {
  std::string namespace_;
  std::string image;                           // The installer's.
  std::vector<std::string> uninstall_command;  // In that image.
  std::vector<std::string> pull_secrets = {};  // Secrets for all images of a Job.
  // Runtimes to fetch before the installer runs, instead of those in its image, in the notation of
  // hangar-node-fetch; and the image with hangar-node-fetch.
  std::vector<std::string> runtimes = {};
  // The runtimes that the installer has to find, FILE[@ARCHITECTURE]=sha256:HEX: from the
  // configuration, not from the container before it.
  std::vector<std::string> checksums = {};
  std::string fetch_image = {};
  std::string fetch_proxy = {};          // Empty: none. Without a password: readers of Jobs see it.
  std::string fetch_no_proxy = {};       // As NO_PROXY.
  std::string fetch_ca_config_map = {};  // With the key ca.crt. Empty: the CAs of the image.
  std::string probe_image = {};          // Empty: no probe.
  std::string probe_runtime_class = {};  // The class without scheduling.
  Duration timeout = limits::kNodeJobMax;
  std::int64_t retries = 2;  // Further pods before the Job counts as failed.
};

// The Job for the attempt that the node is in. The node owns it: it is deleted with the node.
[[nodiscard]] json::Value job_manifest(const NodeView& node, Action action,
                                       const JobOptions& options);

// Provisioned: pods run on provisioned nodes only. Anywhere: for the probe, which runs before a
// node is provisioned.
enum class Scheduling : std::uint8_t { Provisioned, Anywhere };
[[nodiscard]] json::Value runtime_class_manifest(const RuntimeClass& runtime_class,
                                                 Scheduling scheduling);
// "wasmtime-probe".
[[nodiscard]] std::string probe_class_name(std::string_view runtime_class);

// A merge patch that requires the version of the Node that was read.
[[nodiscard]] json::Value node_patch(const NodeView& node, const WriteState& write);
// A strategic merge patch of the Node's status.
[[nodiscard]] json::Value condition_patch(const SetCondition& condition, WallTime now);

// The nodes in progress, and what `hangar nodes` shows of the whole rollout.
struct Record {
  std::string resource_version = {};  // Empty: it does not exist.
  Slots slots = {};
  Slots leaving = {};  // Slots about to be given up: no work starts on their nodes.
  Progress progress = {};
  std::string version = {};
  bool auto_provision = false;

  [[nodiscard]] bool has_slot(std::string_view node) const {
    return slots.contains(node) && !leaving.contains(node);
  }
  bool operator==(const Record&) const = default;
};
// The nodes that have a slot in `after` and had none in `before`.
[[nodiscard]] std::vector<std::string> new_slots(const Record& before, const Record& after);
[[nodiscard]] Record parse_record(const json::Value& config_map);
[[nodiscard]] json::Value record_manifest(const Record& record, std::string_view namespace_);

}  // namespace hangar::nodes
