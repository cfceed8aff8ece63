// What an administrator can choose, and the three places to say it: a flag, an environment
// variable, a file. A flag wins over the environment, the environment over the file.
//
// Each setting is one row of settings(): its flag (--log-level), its variable (HANGAR_LOG_LEVEL)
// and its key in the file (logLevel) are all made from its name, so that none can be forgotten.
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

// The families of controllers that may be left out. One that is left out asks the cluster for
// nothing, so that the host needs no rights for it.
enum class Feature : std::uint8_t { Airways, Flights, Operators, Workflows, Nodes };

struct NodeSettings {
  std::string installer_image = {};  // Empty: nothing is provisioned.
  bool auto_provision = false;
  nodes::Share max_unavailable = {};
  std::vector<nodes::RuntimeClass> runtime_classes = {};
  std::string probe_image = {};
  std::string probe_runtime_class = {};  // Empty: the first of runtime_classes.
  // Words; empty: the image cannot undo. Not said: what is right for the image.
  std::optional<std::vector<std::string>> uninstall_command = {};
  std::vector<std::string> pull_secrets = {};  // Names of Secrets in the namespace of the Jobs.
  std::vector<std::string> runtimes = {};      // As hangar-node-fetch takes them.
  std::string fetch_image = {};                // Has hangar-node-fetch.
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
  std::string context = {};     // Empty: the current one.
  std::string bind_address = "0.0.0.0:8080";
  bool leader_elect = false;
  Duration lease_duration = limits::kLeaseDuration;
  Duration lease_renew_deadline = limits::kLeaseRenewDeadline;
  Duration lease_retry_period = limits::kLeaseRetryPeriod;
  std::string namespace_ = {};  // Of the Lease and of Jobs. Empty: the pod's own, else "default".
  std::string pod = {};  // "namespace/name" of the one that this is in. Empty: none, or unknown.
  std::vector<Feature> features = {};  // Empty: all of them.
  std::uint32_t max_concurrent_reconciles = 32;
  std::uint32_t guest_threads = 0;              // Zero: one a core.
  std::filesystem::path module_cache_dir = {};  // Empty: below the user's cache directory.
  std::string code_cache_key_file = {};         // Empty: the directory is this user's alone.
  airways::Acting airway_service_account = {};  // Without a name: the host itself.
  bool cluster_flights_as_host = false;         // Those that name no service account.
  // Namespaces whose readiness rules count. Empty: the host's own; "*": all; "-": none.
  std::vector<std::string> readiness_rules_from = {};
  Duration module_recheck_interval = modules::kRecheck;
  bool allow_file_modules = false;                     // Modules may be files of this machine.
  std::uint64_t recorder_bytes = recorder::kBytesMax;  // On disk; zero: nothing is recorded.
  Duration recorder_age = recorder::kAgeMax;
  std::filesystem::path recorder_directory = {};  // Empty: in module_cache_dir.
  struct Seeing {
    std::string bind_address = {};  // Empty: records are not shown.
    std::string url = {};
    std::vector<std::string> names = {};
    std::string secret = "hangar-records";
  };
  Seeing seeing = {};
  std::uint64_t operator_memory_bytes = 0;  // Of all operators' guests; zero: no budget.
  std::uint64_t guest_memory_bytes = 0;  // Of all guests; zero: what the container's limit leaves.
  std::uint64_t namespace_memory_bytes = 0;         // Of the guests of one; zero: half of that.
  std::vector<std::string> module_allow_list = {};  // Globs; empty: every source.
  // Where the keys are that modules of flights are verified with. Both empty: they are not.
  std::filesystem::path module_verification_keys = {};  // A file or a directory.
  std::string module_verification_keys_secret = {};     // Of the host's namespace.
  // What module URLs of Operators and StatefulWorkflows may lead to.
  http::AddressPolicy module_addresses = http::AddressPolicy::public_only();
  std::string docker_config = {};         // A docker config.json; empty: DOCKER_CONFIG, ~/.docker.
  std::string docker_config_secret = {};  // In its place, of the host's namespace; empty: none.
  std::filesystem::path compiler = {};    // Empty: hangar-compile beside this program.
  domains::Isolation guest_isolation = domains::Isolation::None;
  std::filesystem::path guest_program = {};  // Empty: hangar-guest beside this program.
  std::uint32_t kube_api_qps = 0;    // Zero: not limited here; the API server has its own limits.
  std::uint32_t kube_api_burst = 0;  // Zero: twice kube_api_qps.
  NodeSettings nodes = {};
  admission::Webhooks::Options webhooks = {};  // Its namespace is found at the start.
  LogFormat log_format = LogFormat::Json;
  LogLevel log_level = LogLevel::Info;

  [[nodiscard]] bool has(Feature feature) const;
};

// Which commands have a setting as a flag: each names the parts that it uses.
enum class Part : std::uint8_t {
  Log,
  Cluster,   // How it is reached.
  Requests,  // How many.
  Modules,   // Where they come from, and where they and their code are kept.
  Guests,    // How many run, in how much memory.
  Walls,     // Where they run.
  Sources,   // What the definitions of tenants may name.
  Features,
  Place,  // The namespace of the Lease and of Jobs.
  Pod,
  Endpoints,  // What is served.
  Leadership,
  Reconciles,
  Nodes,
  Webhooks,
  Recorder,  // What is recorded.
  Records,   // Where it is.
  Seeing,    // Whom it is shown to.
};

struct Setting {
  std::string_view name;  // As a flag, without dashes: "log-level".
  std::string_view help;  // One line; says the default.
  std::string_view type;  // Of the value, for help: "DURATION". Of a switch: empty.
  Part part = Part::Nodes;
  // InvalidInput says what would be right.
  std::function<Result<>(Config& config, std::string_view text)> set;
  bool is_switch = false;  // May stand alone: --leader-elect.
  // As the program that this one replaces calls its variable; ours wins.
  std::string_view published_variable = {};

  [[nodiscard]] std::string variable() const;  // "HANGAR_LOG_LEVEL"
  [[nodiscard]] std::string key() const;       // "logLevel"
};
[[nodiscard]] std::span<const Setting> settings();
// Of a text such as "a,b": without the empty ones.
[[nodiscard]] std::vector<std::string> list_of(std::string_view text);

// A YAML mapping of keys to scalars, lists being joined by commas. InvalidInput names the key that
// is unknown or wrong.
[[nodiscard]] Result<> apply_file(Config& config, std::string_view text);

// `lookup` returns the value of a variable or null, as getenv does.
[[nodiscard]] Result<> apply_environment(Config& config,
                                         const std::function<const char*(const char*)>& lookup);

[[nodiscard]] kube::ClientOptions client_options(const Config& config);

// Where the Lease is, and the Jobs of node provisioning. `own` is the pod's or the kubeconfig's, or
// empty.
[[nodiscard]] std::string lease_namespace(const Config& config, std::string_view own);

// Fills in what depends on the machine: directories, the compiler's place, the number of cores.
// NotFound when a program that is needed is missing; InvalidInput for values that cannot work
// together.
[[nodiscard]] Result<Config> resolve(Config config);

}  // namespace hangar::host
