// An Operator as its manifest declares it: the module, its identity, its limits, and when it may
// leave memory. The schema is deploy/crds/operators.hangar.dev.yaml.
#pragma once

#include "abi/kube_runtime/limits.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "operators/limits.h"
#include "wasm/limits.h"

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::operators {

[[nodiscard]] kube::Resource operator_resource();

// One environment variable: a literal value, or one from the operator's own namespace.
struct EnvironmentEntry {
  enum class Source : std::uint8_t { Literal, ConfigMap, Secret };
  std::string name;
  Source source = Source::Literal;
  std::string value;   // Literal.
  std::string object;  // Name of the ConfigMap or Secret.
  std::string key;
  bool is_optional = false;

  friend bool operator==(const EnvironmentEntry&, const EnvironmentEntry&) = default;
};

// Each key of a ConfigMap or Secret becomes a file "<path>/<key>".
struct FileEntry {
  std::string path;  // Absolute.
  bool is_secret = false;
  std::string object;
  bool is_optional = false;

  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};

// An object of the cluster whose webhooks the operator answers.
enum class WebhookKind : std::uint8_t { Validating, Mutating, Conversion };
// "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "CustomResourceDefinition".
[[nodiscard]] std::string_view name_of(WebhookKind kind);
struct WebhookSource {
  WebhookKind kind = WebhookKind::Validating;
  std::string name;

  auto operator<=>(const WebhookSource&) const = default;
};

struct SleepPolicy {
  enum class Kind : std::uint8_t { Idle, Never, Predictive };
  Kind kind = Kind::Idle;
  // Idle time before it sleeps; with Predictive, until its wakes are known.
  Duration after = std::chrono::seconds(1);
  // Predictive: how long the resume of 95 % of its wakes may take.
  Duration wake_latency = limits::kOperatorWakeLatency;

  friend bool operator==(const SleepPolicy&, const SleepPolicy&) = default;
};

// With whom an operator shares its process, where guests have processes of their own.
enum class Isolation : std::uint8_t {
  Namespace,  // The other guests of its namespace, or of the host.
  Operator,   // Nobody.
};

// What the flight recorder keeps of its requests.
enum class Recording : std::uint8_t {
  Metadata,
  Bodies,  // Also the bodies of its writes, if the policies of its namespace allow that.
};

struct OperatorLimits {
  std::uint64_t memory_bytes = 64 * limits::kMiB;
  Duration cpu_time_per_wake = limits::kGuestCallMax;
  double requests_per_second = 50;                            // Average; bursts of twice as many.
  std::uint64_t log_bytes = limits::kOperatorOutputBytesMax;  // Per wake, and per second.

  friend bool operator==(const OperatorLimits&, const OperatorLimits&) = default;
};

struct Operator {
  kube::ObjectKey key;
  std::string uid;
  std::int64_t generation = 0;

  std::string module;  // A reference that modules::Reference parses.
  std::string sha256;  // Expected; empty: any.
  bool insecure = false;
  std::vector<std::string> args;
  std::vector<EnvironmentEntry> environment;
  std::vector<FileEntry> files;
  std::string service_account = "default";  // In its namespace; empty: it acts as the host.
  OperatorLimits limits;
  SleepPolicy sleep;
  std::vector<WebhookSource> webhooks;
  Isolation isolation = Isolation::Namespace;
  Recording record = Recording::Metadata;

  friend bool operator==(const Operator&, const Operator&) = default;
};

// Errors: InvalidInput, which names the field. Refuses all that the API server's schema refuses,
// since a host may be newer than the schema in the cluster.
[[nodiscard]] Result<Operator> parse_operator(const json::Value& manifest);

// Reads a directory's configuration in its published form: documents {name, wasm, env, args},
// where `wasm` is a path below the directory, or the name of a module in it. Such operators act
// as the host, get generous limits, and sleep as `sleep` says. Errors: InvalidInput, which names
// the document.
[[nodiscard]] Result<std::vector<Operator>> parse_wasm_config(std::string_view yaml,
                                                              std::string_view directory,
                                                              SleepPolicy sleep);

}  // namespace hangar::operators
