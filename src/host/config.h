// The settings of hangar. An administrator sets them with a flag, an environment variable or a
// file. A flag overrides the environment, the environment overrides the file.
//
// Each setting is one row of settings(). Its flag (--log-level), its variable (HANGAR_LOG_LEVEL)
// and its key in the file (logLevel) are derived from its name.
#pragma once

#include "admission/webhooks.h"
#include "airways/acting.h"
#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "domains/guest_processes.h"
#include "http/address_policy.h"
#include "kube/client.h"
#include "modules/supply.h"
#include "nodes/limits.h"
#include "nodes/manifests.h"
#include "nodes/rollout.h"
#include "reconcile/limits.h"
#include "recorder/limits.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::host {

enum class LogFormat : std::uint8_t { Json, Console };

// Features that can be switched off. A feature that is off sends no request to the cluster, so the
// host needs no rights for it.
enum class Feature : std::uint8_t { Airways, Flights, Operators, Workflows, Nodes };

struct NodeSettings {
  std::string installer_image = {};  // Empty: nothing is provisioned.
  bool auto_provision = false;
  nodes::Share max_unavailable = {};
  std::vector<nodes::RuntimeClass> runtime_classes = {};
  std::string probe_image = {};
  std::string probe_runtime_class = {};  // Empty: the first of runtime_classes.
  // The arguments; empty: the image cannot uninstall. Not set: the default of the image.
  std::optional<std::vector<std::string>> uninstall_command = {};
  std::vector<std::string> pull_secrets = {};  // Names of Secrets in the namespace of the Jobs.
  std::vector<std::string> runtimes = {};      // In the syntax of hangar-node-fetch.
  std::string fetch_image = {};                // The image that has hangar-node-fetch.
  std::string fetch_proxy = {};
  std::string fetch_no_proxy = {};
  std::string fetch_ca_config_map = {};  // In the namespace of the Jobs.
  Duration job_timeout = limits::kNodeJobMax;
  std::uint32_t job_retries = 2;
  Duration retry_delay = limits::kNodeRetryMin;
  Duration ready_delay = limits::kNodeReadyMin;
};

struct Config {
  std::string kubeconfig = {};  // Empty: KUBECONFIG, then in-cluster, then ~/.kube/config.
  std::string context = {};     // Empty: the current context.
  std::string bind_address = "0.0.0.0:8080";
  bool leader_elect = false;
  Duration lease_duration = limits::kLeaseDuration;
  Duration lease_renew_deadline = limits::kLeaseRenewDeadline;
  Duration lease_retry_period = limits::kLeaseRetryPeriod;
  std::string namespace_ = {};  // Of the Lease and the Jobs. Empty: that of the pod, or "default".
  std::string pod = {};  // "namespace/name" of the host's own pod. Empty: not in a pod, or unknown.
  std::vector<Feature> features = {};  // Empty: all features.
  std::uint32_t max_concurrent_reconciles = 32;
  std::uint32_t guest_threads = 0;              // Zero: one for each core.
  std::filesystem::path module_cache_dir = {};  // Empty: in the user's cache directory.
  std::string code_cache_key_file = {};         // Empty: the code is not signed.
  airways::Acting airway_service_account = {};  // Without a name: the host.
  bool cluster_flights_as_host = false;         // For flights without a service account.
  // Namespaces whose readiness rules are used. Empty: the host's own; "*": all; "-": none.
  std::vector<std::string> readiness_rules_from = {};
  Duration module_recheck_interval = modules::kRecheck;
  bool allow_file_modules = false;                     // Modules may be local files.
  std::uint64_t recorder_bytes = recorder::kBytesMax;  // Limit on disk; zero: nothing is recorded.
  Duration recorder_age = recorder::kAgeMax;
  std::filesystem::path recorder_directory = {};  // Empty: in module_cache_dir.
  struct Seeing {
    std::string bind_address = {};  // Empty: records are not shown.
    std::string url = {};
    std::vector<std::string> names = {};
    std::string secret = "hangar-records";
  };
  Seeing seeing = {};
  struct Traces {
    std::string url = {};  // Empty: no traces.
    double ratio = 0.05;
  };
  Traces traces = {};
  std::uint64_t module_cache_bytes = 0;      // Zero: a limit for each kind of file (DiskShares).
  std::uint64_t operator_memory_bytes = 0;   // For the guests of all operators; zero: no budget.
  std::uint64_t guest_memory_bytes = 0;      // For all guests; zero: derived from the container.
  std::uint64_t namespace_memory_bytes = 0;  // For the guests of one namespace; zero: half of that.
  std::vector<std::string> module_allow_list = {};  // Globs; empty: any source.
  // The keys that verify modules of flights. Both empty: modules are not verified.
  std::filesystem::path module_verification_keys = {};  // A file or a directory.
  std::string module_verification_keys_secret = {};     // In the host's namespace.
  std::filesystem::path module_policy = {};             // A file; empty: no rules by URL.
  // Addresses that module URLs of Operators and StatefulWorkflows may lead to.
  http::AddressPolicy module_addresses = http::AddressPolicy::public_only();
  // Addresses that other servers of operators may have, where a TenantPolicy allows private ones.
  http::AddressPolicy outbound_addresses = http::AddressPolicy::public_only();
  std::string docker_config = {};         // A docker config.json; empty: DOCKER_CONFIG, ~/.docker.
  std::string docker_config_secret = {};  // Replaces docker_config; in the host's namespace.
  // Empty: hangar-compile beside this program; after resolve(): there is none.
  std::filesystem::path compiler = {};
  std::filesystem::path native_code_dir = {};  // Code that builders have signed; empty: none.
  std::filesystem::path builder_keys = {};     // A file or a directory; with native_code_dir.
  // Unset: Namespace where guests run (resolve_for_guests).
  std::optional<domains::Isolation> guest_isolation = {};
  // Namespaces are slowed to an equal part of the processors while these are short.
  bool shares_processors_equally = true;
  std::filesystem::path guest_program = {};  // Empty: hangar-guest beside this program.
  std::uint32_t kube_api_qps = 0;            // Zero: no limit here; the API server has its own.
  std::uint32_t kube_api_burst = 0;          // Zero: twice kube_api_qps.
  NodeSettings nodes = {};
  admission::Webhooks::Options webhooks = {};  // Without its namespace, which is set at the start.
  LogFormat log_format = LogFormat::Json;
  LogLevel log_level = LogLevel::Info;

  [[nodiscard]] bool has(Feature feature) const;
};

// Groups of settings: a command has the flags of the groups that it uses.
enum class Part : std::uint8_t {
  Log,
  Cluster,   // How to reach the cluster.
  Requests,  // Rate of requests to the API server.
  Modules,   // Sources of modules; where modules and code are stored.
  Guests,    // Threads and memory of guests.
  Walls,     // Processes that guests run in.
  Sources,   // Rules for modules that resources name.
  Policy,    // Which signatures modules need, by their URLs.
  Features,
  Place,  // The namespace of the Lease and of Jobs.
  Pod,
  Endpoints,  // Health and metrics.
  Leadership,
  Reconciles,
  Nodes,
  Webhooks,
  Recorder,  // Limits of records.
  Records,   // Directory of records.
  Seeing,    // The server that shows records.
  Traces,
};

struct Setting {
  std::string_view name;  // The flag without dashes: "log-level".
  std::string_view help;  // One line, with the default.
  std::string_view type;  // Type of the value in help: "DURATION". Empty for a switch.
  Part part = Part::Nodes;
  // InvalidInput: the message says which values are valid.
  std::function<Result<>(Config& config, std::string_view text)> set;
  bool is_switch = false;  // Needs no value: --leader-elect.
  // The variable of the program that hangar replaces; hangar's own variable overrides it.
  std::string_view published_variable = {};

  [[nodiscard]] std::string variable() const;  // "HANGAR_LOG_LEVEL"
  [[nodiscard]] std::string key() const;       // "logLevel"
};
[[nodiscard]] std::span<const Setting> settings();
// The parts of a text such as "a,b", without empty ones.
[[nodiscard]] std::vector<std::string> list_of(std::string_view text);

// Applies a YAML mapping of keys to scalars or lists; lists are joined by commas. InvalidInput
// names the key that is unknown or wrong.
[[nodiscard]] Result<> apply_file(Config& config, std::string_view text);

// `lookup` returns the value of a variable or null, like getenv.
[[nodiscard]] Result<> apply_environment(Config& config,
                                         const std::function<const char*(const char*)>& lookup);

[[nodiscard]] kube::ClientOptions client_options(const Config& config);

// The namespace of the Lease and of the Jobs that provision nodes. `own` is the namespace of the
// pod or kubeconfig, or empty.
[[nodiscard]] std::string lease_namespace(const Config& config, std::string_view own);

// Fills in defaults that depend on the machine: directories, programs, the number of threads.
// NotFound when a required program is missing; InvalidInput for values that contradict each other.
[[nodiscard]] Result<Config> resolve(Config config);
// The same for a host or command that runs guests: it runs them in guest processes unless a setting
// says otherwise.
[[nodiscard]] Result<Config> resolve_for_guests(Config config);

}  // namespace hangar::host
