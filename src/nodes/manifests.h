// The objects that provisioning makes: Jobs, RuntimeClasses, the record of a rollout, and the
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
  std::string handler;  // As containerd's configuration names the runtime.
  bool operator==(const RuntimeClass&) const = default;
};
// "wasmtime", or "fast=wasmtime" for a class that is called otherwise than its handler.
// InvalidInput.
[[nodiscard]] Result<RuntimeClass> parse_runtime_class(std::string_view text);

// What a node is provisioned with: the installer's image, and where runtimes are fetched a hash of
// which ones and their checksums ("image+runtimes.1a2b3c4d"). Where they come from says nothing.
[[nodiscard]] std::string version_of(std::string_view image, std::vector<std::string> runtimes);

struct JobOptions {
  std::string namespace_;
  std::string image;                           // The installer's.
  std::vector<std::string> uninstall_command;  // In that image.
  std::vector<std::string> pull_secrets = {};  // Of that namespace, for all images of a Job.
  // What is fetched before the installer runs, instead of what its image has, as hangar-node-fetch
  // takes it; and an image with hangar-node-fetch, which does it.
  std::vector<std::string> runtimes = {};
  // What the installer has to find of it, FILE[@ARCHITECTURE]=sha256:HEX: what it is told, and not
  // what a container before it has written down.
  std::vector<std::string> checksums = {};
  std::string fetch_image = {};
  std::string fetch_proxy = {};     // Empty: none. Without a password: everybody can read a Job.
  std::string fetch_no_proxy = {};  // As NO_PROXY.
  std::string fetch_ca_config_map = {};  // With the key ca.crt. Empty: the CAs of the image.
  std::string probe_image = {};          // Empty: no probe.
  std::string probe_runtime_class = {};  // The one without scheduling.
  Duration timeout = limits::kNodeJobMax;
  std::int64_t retries = 2;  // Pods after the first one, before the Job has failed.
};

// For the attempt that the node is in the middle of. The node owns it: it goes with the node.
[[nodiscard]] json::Value job_manifest(const NodeView& node, Action action,
                                       const JobOptions& options);

// With scheduling to provisioned nodes; for the probe, which runs before a node is one, without.
enum class Scheduling : std::uint8_t { Provisioned, Anywhere };
[[nodiscard]] json::Value runtime_class_manifest(const RuntimeClass& runtime_class,
                                                 Scheduling scheduling);
// "wasmtime-probe".
[[nodiscard]] std::string probe_class_name(std::string_view runtime_class);

// A merge patch that needs the version of the Node which was looked at.
[[nodiscard]] json::Value node_patch(const NodeView& node, const WriteState& write);
// A strategic merge patch of the Node's status.
[[nodiscard]] json::Value condition_patch(const SetCondition& condition, WallTime now);

// Who is being worked on, and what `hangar nodes` says about the whole.
struct Record {
  std::string resource_version = {};  // Empty: it does not exist.
  Slots slots = {};
  Slots leaving = {};  // Of slots: about to be given up, so that their nodes are not begun.
  Progress progress = {};
  std::string version = {};
  bool auto_provision = false;

  [[nodiscard]] bool has_slot(std::string_view node) const {
    return slots.contains(node) && !leaving.contains(node);
  }
  bool operator==(const Record&) const = default;
};
[[nodiscard]] Record parse_record(const json::Value& config_map);
[[nodiscard]] json::Value record_manifest(const Record& record, std::string_view namespace_);

}  // namespace hangar::nodes
