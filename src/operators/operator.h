// An Operator as its manifest says it: what to run, as whom, within which bounds, and when it may
// leave memory. deploy/crds/operators.hangar.dev.yaml is the schema.
#pragma once

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "wasm/limits.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::operators {

[[nodiscard]] kube::Resource operator_resource();

// One value from the operator's own namespace, or given literally.
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

// Every key of a ConfigMap or Secret as a file "<path>/<key>".
struct FileEntry {
  std::string path;  // Absolute.
  bool is_secret = false;
  std::string object;
  bool is_optional = false;

  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};

struct SleepPolicy {
  enum class Kind : std::uint8_t { Idle, Never };
  Kind kind = Kind::Idle;
  Duration after = std::chrono::seconds(1);  // Without anything to do.

  friend bool operator==(const SleepPolicy&, const SleepPolicy&) = default;
};

struct OperatorLimits {
  std::uint64_t memory_bytes = 64 * limits::kMiB;
  Duration cpu_time_per_wake = limits::kGuestCallMax;
  double requests_per_second = 50;                            // Over time; twice as many at once.
  std::uint64_t log_bytes = limits::kOperatorOutputBytesMax;  // Of one wake, and a second.

  friend bool operator==(const OperatorLimits&, const OperatorLimits&) = default;
};

struct Operator {
  kube::ObjectKey key;
  std::string uid;
  std::int64_t generation = 0;

  std::string module;  // A reference as modules::Reference reads it.
  std::string sha256;  // Expected; empty: any.
  bool insecure = false;
  std::vector<std::string> args;
  std::vector<EnvironmentEntry> environment;
  std::vector<FileEntry> files;
  std::string service_account = "default";  // Of its namespace; empty: it acts as the host itself.
  OperatorLimits limits;
  SleepPolicy sleep;

  friend bool operator==(const Operator&, const Operator&) = default;
};

// InvalidInput naming the field. What the API server's schema refuses is refused here too: a host
// may be newer than the cluster's schema.
[[nodiscard]] Result<Operator> parse_operator(const json::Value& manifest);

// The published configuration of a directory: documents {name, wasm, env, args}; `wasm` is a path
// below the directory, or the name of a module in it. Such operators act as the host itself, are
// given plenty, and sleep as `sleep` says. InvalidInput naming the document.
[[nodiscard]] Result<std::vector<Operator>> parse_wasm_config(std::string_view yaml,
                                                              std::string_view directory,
                                                              SleepPolicy sleep);

}  // namespace hangar::operators
