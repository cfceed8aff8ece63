#include "host/config.h"

#include "base/log.h"
#include "base/number.h"
#include "base/quantity.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "domains/guest_processes.h"
#include "host/disk_shares.h"
#include "host/node_settings.h"
#include "host/recording.h"
#include "host/seeing.h"
#include "host/tracing.h"
#include "host/webhook_settings.h"
#include "http/address_policy.h"
#include "io/program.h"
#include "json/value.h"
#include "json/yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::host {

namespace {

using Set = std::function<Result<>(Config&, std::string_view)>;

template <class Text>
Set text_into(Text Config::* member) {
  return [member](Config& config, std::string_view text) -> Result<> {
    config.*member = Text(text);
    return {};
  };
}

Set number_into(std::uint32_t Config::* member) {
  return [member](Config& config, std::string_view text) -> Result<> {
    const auto number = parse_number<std::uint32_t>(text);
    if (!number) {
      return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is not a whole number", text));
    }
    config.*member = *number;
    return {};
  };
}

Set bytes_into(std::uint64_t Config::* member) {
  return [member](Config& config, std::string_view text) -> Result<> {
    config.*member = HANGAR_TRY(parse_bytes(text));
    return {};
  };
}

Set flag_into(bool Config::* member) {
  return [member](Config& config, std::string_view text) -> Result<> {
    if (text != "true" && text != "false") {
      return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is neither true nor false", text));
    }
    config.*member = text == "true";
    return {};
  };
}

Set duration_into(Duration Config::* member) {
  return [member](Config& config, std::string_view text) -> Result<> {
    const Result<Duration> duration = parse_go_duration(text);
    if (!duration || *duration <= Duration::zero()) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("\"{}\" is not a duration such as 15s or 500ms", text));
    }
    config.*member = *duration;
    return {};
  };
}

Set list_into(std::vector<std::string> Config::* member) {
  return [member](Config& config, std::string_view text) -> Result<> {
    config.*member = list_of(text);
    return {};
  };
}

Set networks_into(http::AddressPolicy Config::* member) {
  return [member](Config& config, std::string_view text) -> Result<> {
    config.*member = HANGAR_TRY(http::AddressPolicy::public_and(list_of(text)));
    return {};
  };
}

template <class Choice>
using Choices = std::vector<std::pair<std::string, Choice>>;

template <class Choice>
Result<Choice> choose(const Choices<Choice>& choices, std::string_view text) {
  const auto found = std::ranges::find(choices, text, [](const auto& one) { return one.first; });
  if (found != choices.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices)
    names.push_back(name);
  return fail(ErrorKind::InvalidInput,
              fmt::format("\"{}\" is not one of {}", text, fmt::join(names, ", ")));
}

// `Member`: Choice or std::optional<Choice>.
template <class Choice, class Member>
Set choice_into(Member Config::* member, Choices<Choice> choices) {
  return [member, choices = std::move(choices)](Config& config, std::string_view text) -> Result<> {
    config.*member = HANGAR_TRY(choose(choices, text));
    return {};
  };
}

template <class Choice>
Set choices_into(std::vector<Choice> Config::* member, Choices<Choice> choices) {
  return [member, choices = std::move(choices)](Config& config, std::string_view text) -> Result<> {
    std::vector<Choice> chosen;
    for (const std::string& one : list_of(text))
      chosen.push_back(HANGAR_TRY(choose(choices, one)));
    config.*member = std::move(chosen);
    return {};
  };
}

std::vector<Setting> general_settings() {
  return {
      {.name = "kubeconfig",
       .help = "kubeconfig file (default: KUBECONFIG, then the in-cluster configuration)",
       .type = "FILE",
       .part = Part::Cluster,
       .set = text_into(&Config::kubeconfig)},
      {.name = "context",
       .help = "context of the kubeconfig (default: the current context)",
       .type = "NAME",
       .part = Part::Cluster,
       .set = text_into(&Config::context)},
      {.name = "bind-address",
       .help = "address of /metrics, /healthz and /readyz (default 0.0.0.0:8080)",
       .type = "ADDRESS:PORT",
       .part = Part::Endpoints,
       .set = text_into(&Config::bind_address)},
      {.name = "leader-elect",
       .help =
           "act only while holding the Lease; required if several replicas may run (default false)",
       .part = Part::Leadership,
       .set = flag_into(&Config::leader_elect),
       .is_switch = true},
      {.name = "leader-elect-lease-duration",
       .help = "time after the last observed renewal of the Lease until another host takes over "
               "(default 15s)",
       .type = "DURATION",
       .part = Part::Leadership,
       .set = duration_into(&Config::lease_duration)},
      {.name = "leader-elect-renew-deadline",
       .help = "time after its last renewal of the Lease until a host stops writing; shorter than "
               "the lease duration (default 10s)",
       .type = "DURATION",
       .part = Part::Leadership,
       .set = duration_into(&Config::lease_renew_deadline)},
      {.name = "leader-elect-retry-period",
       .help = "interval between attempts to renew or acquire the Lease (default 2s)",
       .type = "DURATION",
       .part = Part::Leadership,
       .set = duration_into(&Config::lease_retry_period)},
      {.name = "pod",
       .help = "pod that this process runs in, as namespace/name; hangar logs finds the host by it "
               "(default: none)",
       .type = "NAMESPACE/NAME",
       .part = Part::Pod,
       .set = text_into(&Config::pod)},
      {.name = "namespace",
       .help = "namespace of the Lease and of the Jobs that provision nodes (default: the pod's "
               "namespace, else default)",
       .type = "NAMESPACE",
       .part = Part::Place,
       .set = text_into(&Config::namespace_),
       .published_variable = "CONTROLLER_NAMESPACE"},
      {.name = "features",
       .help = "comma-separated features of the host: airways, flights, operators, workflows, "
               "nodes (default: all)",
       .type = "LIST",
       .part = Part::Features,
       .set = choices_into<Feature>(&Config::features, {{"airways", Feature::Airways},
                                                        {"flights", Feature::Flights},
                                                        {"operators", Feature::Operators},
                                                        {"workflows", Feature::Workflows},
                                                        {"nodes", Feature::Nodes}})},
      {.name = "max-concurrent-reconciles",
       .help = "maximum number of concurrent reconciles over all kinds, at most half of them in "
               "one namespace (default 32)",
       .type = "NUMBER",
       .part = Part::Reconciles,
       .set = number_into(&Config::max_concurrent_reconciles)},
      {.name = "guest-threads",
       .help = "number of threads that run Wasm (default: one per core)",
       .type = "NUMBER",
       .part = Part::Guests,
       .set = number_into(&Config::guest_threads)},
      {.name = "module-cache-dir",
       .help = "private directory for modules and compiled code (default: ~/.cache/hangar/modules)",
       .type = "DIRECTORY",
       .part = Part::Modules,
       .set = text_into(&Config::module_cache_dir)},
      {.name = "module-cache-size",
       .help = "maximum size of module-cache-dir, divided between the kinds of files, such as 4Gi "
               "(default: a separate limit for each kind of file)",
       .type = "BYTES",
       .part = Part::Modules,
       .set = bytes_into(&Config::module_cache_bytes)},
      {.name = "code-cache-key-file",
       .help = "file with a secret of at least 32 bytes that signs the compiled code in "
               "module-cache-dir; keep it off that volume (default: none, only this user may write "
               "to the directory)",
       .type = "FILE",
       .part = Part::Modules,
       .set = text_into(&Config::code_cache_key_file)},
      {.name = "module-allow-list",
       .help =
           "comma-separated globs of the module URLs that resources may name (default: every URL)",
       .type = "GLOBS",
       .part = Part::Modules,
       .set = list_into(&Config::module_allow_list)},
      {.name = "module-verification-keys",
       .help = "public key, or directory of public keys (.pem), with one of which modules of "
               "Airways, Flights and ClusterFlights must be signed; ignored if module-allow-list "
               "is set (default: none)",
       .type = "FILE|DIRECTORY",
       .part = Part::Sources,
       .set = text_into(&Config::module_verification_keys)},
      {.name = "module-verification-keys-secret",
       .help = "Secret in the host's namespace with these public keys; changes take effect at once "
               "(default: none)",
       .type = "NAME",
       .part = Part::Sources,
       .set = text_into(&Config::module_verification_keys_secret)},
      {.name = "module-policy",
       .help = "YAML file that maps prefixes of module URLs to required signatures: cosign, yoke, "
               "none or deny (default: no rules)",
       .type = "FILE",
       .part = Part::Policy,
       .set = text_into(&Config::module_policy)},
      {.name = "module-address-allow-list",
       .help = "comma-separated networks (10.96.0.0/12), addresses and the word private, to which "
               "module URLs of Flights, Operators and StatefulWorkflows may lead besides public "
               "addresses (default: none)",
       .type = "NETWORKS",
       .part = Part::Sources,
       .set = networks_into(&Config::module_addresses)},
      {.name = "outbound-address-allow-list",
       .help = "comma-separated networks (10.96.0.0/12), addresses and the word private, to which "
               "requests of operators to other servers may lead besides public addresses, where a "
               "TenantPolicy allows private addresses (default: none)",
       .type = "NETWORKS",
       .part = Part::Reconciles,
       .set = networks_into(&Config::outbound_addresses)},
      {.name = "airway-service-account",
       .help = "ServiceAccount of flights whose Airway names none: a name in the namespace of each "
               "instance, or namespace/name (default: the host itself)",
       .type = "ACCOUNT",
       .part = Part::Reconciles,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.airway_service_account = HANGAR_TRY(airways::parse_acting(text));
         return {};
       }},
      {.name = "cluster-flights-as-host",
       .help = "let ClusterFlights that name no ServiceAccount act as the host itself (default "
               "false: they are refused)",
       .part = Part::Reconciles,
       .set = flag_into(&Config::cluster_flights_as_host),
       .is_switch = true},
      {.name = "readiness-rules-from",
       .help =
           "comma-separated namespaces whose ConfigMaps with the label resource.yoke.cd/readiness "
           "define when resources are ready; * for all, - for none (default: the host's namespace)",
       .type = "NAMESPACES",
       .part = Part::Reconciles,
       .set = list_into(&Config::readiness_rules_from)},
      {.name = "module-recheck-interval",
       .help = "interval between checks whether the source of a module serves other bytes; without "
               "a change, a check is one short request (default 5m)",
       .type = "DURATION",
       .part = Part::Sources,
       .set = duration_into(&Config::module_recheck_interval)},
      {.name = "allow-file-modules",
       .help = "let Airways, Flights, Operators and StatefulWorkflows name files of the host's "
               "machine as modules (default false)",
       .part = Part::Sources,
       .set = flag_into(&Config::allow_file_modules),
       .is_switch = true},
      {.name = "operator-memory-budget",
       .help = "memory of all operators above which idle ones are suspended, such as 256Mi "
               "(default: each by its own sleep policy only)",
       .type = "BYTES",
       .part = Part::Guests,
       .set = bytes_into(&Config::operator_memory_bytes)},
      {.name = "guest-memory",
       .help = "memory limit of all guests together, such as 768Mi; a guest that does not fit "
               "waits (default: the container's limit less a quarter for the host)",
       .type = "BYTES",
       .part = Part::Guests,
       .set = bytes_into(&Config::guest_memory_bytes)},
      {.name = "namespace-guest-memory",
       .help = "memory limit of the guests of one namespace (default: half of guest-memory)",
       .type = "BYTES",
       .part = Part::Guests,
       .set = bytes_into(&Config::namespace_memory_bytes)},
      {.name = "docker-config",
       .help = "docker config.json with registry credentials (default: DOCKER_CONFIG, ~/.docker)",
       .type = "FILE",
       .part = Part::Modules,
       .set = text_into(&Config::docker_config)},
      {.name = "docker-config-secret",
       .help = "Secret in the host's namespace with registry credentials (.dockerconfigjson), in "
               "place of docker-config; changes take effect at once (default: none)",
       .type = "NAME",
       .part = Part::Sources,
       .set = text_into(&Config::docker_config_secret)},
      {.name = "compiler",
       .help = "path of the hangar-compile program (default: in the directory of this program)",
       .type = "FILE",
       .part = Part::Modules,
       .set = text_into(&Config::compiler)},
      {.name = "native-code-dir",
       .help = "directory of native code that hangar build code has made; used in place of the "
               "compiler, which may then be missing; needs builder-keys (default: none)",
       .type = "DIRECTORY",
       .part = Part::Modules,
       .set = text_into(&Config::native_code_dir)},
      {.name = "builder-keys",
       .help = "public key, or directory of public keys (.pem), with one of which native code in "
               "native-code-dir must be signed (default: none)",
       .type = "FILE|DIRECTORY",
       .part = Part::Modules,
       .set = text_into(&Config::builder_keys)},
      {.name = "guest-isolation",
       .help =
           "process in which flights, operators and machines of workflows run: none (this one), "
           "shared (one for all, without the cluster credential) or namespace (one such process "
           "for each namespace) (default: namespace)",
       .type = "ISOLATION",
       .part = Part::Walls,
       .set = choice_into<domains::Isolation>(&Config::guest_isolation,
                                              {{"none", domains::Isolation::None},
                                               {"shared", domains::Isolation::Shared},
                                               {"namespace", domains::Isolation::Namespace}})},
      {.name = "processor-sharing",
       .help = "while processors are short, slow namespaces that take more than an equal part of "
               "them to that part: equal or none (default equal)",
       .type = "SHARING",
       .part = Part::Reconciles,
       .set = choice_into<bool>(&Config::shares_processors_equally,
                                {{"equal", true}, {"none", false}})},
      {.name = "guest-program",
       .help = "path of the hangar-guest program (default: in the directory of this program)",
       .type = "FILE",
       .part = Part::Walls,
       .set = text_into(&Config::guest_program)},
      {.name = "kube-api-qps",
       .help = "maximum number of requests per second to the API server; the same limit applies "
               "separately to watches and to admission (default 0: no limit on the host's side)",
       .type = "NUMBER",
       .part = Part::Requests,
       .set = number_into(&Config::kube_api_qps)},
      {.name = "kube-api-burst",
       .help = "burst of requests above kube-api-qps (default: twice kube-api-qps)",
       .type = "NUMBER",
       .part = Part::Requests,
       .set = number_into(&Config::kube_api_burst)},
      {.name = "log-format",
       .help = "format of the log: json or console (default json)",
       .type = "FORMAT",
       .part = Part::Log,
       .set = choice_into<LogFormat>(&Config::log_format,
                                     {{"json", LogFormat::Json}, {"console", LogFormat::Console}})},
      {.name = "log-level",
       .help = "level of the log: debug, info, warning or error (default info)",
       .type = "LEVEL",
       .part = Part::Log,
       .set = choice_into<LogLevel>(&Config::log_level, {{"debug", LogLevel::Debug},
                                                         {"info", LogLevel::Info},
                                                         {"warning", LogLevel::Warning},
                                                         {"error", LogLevel::Error}})},
  };
}

const std::vector<Setting>& table() {
  static const std::vector<Setting> rows = [] {
    std::vector<Setting> all = general_settings();
    std::ranges::move(node_settings(), std::back_inserter(all));
    std::ranges::move(webhook_settings(), std::back_inserter(all));
    std::ranges::move(recorder_settings(), std::back_inserter(all));
    std::ranges::move(seeing_settings(), std::back_inserter(all));
    std::ranges::move(tracing_settings(), std::back_inserter(all));
    return all;
  }();
  return rows;
}

// A YAML scalar, or a list of them, as the text of a flag.
Result<std::string> text_of(const json::Value& value) {
  if (const auto* text = value.if_string()) return std::string(*text);
  if (const auto* list = value.if_array()) {
    std::vector<std::string> parts;
    for (const json::Value& one : *list)
      parts.push_back(HANGAR_TRY(text_of(one)));
    return fmt::format("{}", fmt::join(parts, ","));
  }
  if (value.is_bool() || value.is_number()) return json::dump(value);
  return fail(ErrorKind::InvalidInput, "must be a scalar or a list of scalars");
}

// The directory for files that programs of the user can recreate.
std::filesystem::path user_cache_directory() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread starts.
  const auto variable = [](const char* name) { return std::getenv(name); };
  if (const char* const cache = variable("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return cache;
  }
  if (const char* const home = variable("HOME"); home != nullptr && *home == '/') {
    return std::filesystem::path(home) / ".cache";
  }
  return "/var/cache";
}

}  // namespace

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) list.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return list;
}

bool Config::has(Feature feature) const {
  return features.empty() || std::ranges::find(features, feature) != features.end();
}

std::string Setting::variable() const {
  std::string result = "HANGAR_";
  for (const char one : name) {
    result += one == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(one)));
  }
  return result;
}

std::string Setting::key() const {
  std::string result;
  bool upper = false;
  for (const char one : name) {
    if (one != '-') {
      result += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(one))) : one;
    }
    upper = one == '-';
  }
  return result;
}

std::span<const Setting> settings() {
  return table();
}

Result<> apply_file(Config& config, std::string_view text) {
  const json::Value document = HANGAR_TRY(json::parse_yaml(text));
  const auto* members = document.if_object();
  if (members == nullptr) {
    return fail(ErrorKind::InvalidInput, "must be a mapping of settings, such as logLevel: debug");
  }
  for (const auto& member : *members) {
    const std::string_view key(member.key());
    const auto row = std::ranges::find(table(), key, &Setting::key);
    if (row == table().end()) {
      return fail(ErrorKind::InvalidInput, fmt::format("unknown setting \"{}\"", key));
    }
    Result<std::string> value = text_of(member.value());
    if (!value) return std::unexpected(std::move(value).error().in(key));
    Result<> set = row->set(config, *value);
    if (!set) return std::unexpected(std::move(set).error().in(key));
  }
  return {};
}

Result<> apply_environment(Config& config, const std::function<const char*(const char*)>& lookup) {
  for (const Setting& setting : table()) {
    std::string name = setting.variable();
    const char* value = lookup(name.c_str());
    if ((value == nullptr || *value == '\0') && !setting.published_variable.empty()) {
      name = setting.published_variable;
      value = lookup(name.c_str());
    }
    if (value == nullptr || *value == '\0') continue;
    Result<> set = setting.set(config, value);
    if (!set) return std::unexpected(std::move(set).error().in(name));
  }
  return {};
}

kube::ClientOptions client_options(const Config& config) {
  return {.requests_per_second = static_cast<double>(config.kube_api_qps),
          .burst = config.kube_api_burst != 0 ? config.kube_api_burst : 2 * config.kube_api_qps};
}

namespace {

// `otherwise`: the user's alternative, for the message.
Result<std::filesystem::path> beside_this_program(std::string_view name, std::string_view flag,
                                                  std::string_view otherwise = {}) {
  std::filesystem::path program = HANGAR_TRY(io::own_program()).parent_path() / name;
  std::error_code error;
  if (!std::filesystem::exists(program, error)) {
    return fail(ErrorKind::NotFound,
                fmt::format("{} is missing: install it beside this program, or say where it is "
                            "with --{}{}",
                            program.string(), flag, otherwise));
  }
  return program;
}

// As in client-go, but with a shorter retry period: after a renewal that timed out, there is time
// for another one before the deadline.
Result<> check_lease(const Config& config) {
  using std::chrono::milliseconds;
  constexpr std::chrono::seconds kDurationMin{1};
  constexpr milliseconds kRetryMin{100};
  if (config.lease_duration < kDurationMin || config.lease_retry_period < kRetryMin) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("leader-elect-lease-duration must be at least {}, "
                            "leader-elect-retry-period at least {}",
                            to_go_duration(kDurationMin), to_go_duration(kRetryMin)));
  }
  if (config.lease_renew_deadline >= config.lease_duration) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("leader-elect-renew-deadline ({}) must be shorter than "
                            "leader-elect-lease-duration ({})",
                            to_go_duration(config.lease_renew_deadline),
                            to_go_duration(config.lease_duration)));
  }
  if (config.lease_retry_period * 2 > config.lease_renew_deadline) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("leader-elect-retry-period ({}) must be at most half of "
                            "leader-elect-renew-deadline ({})",
                            to_go_duration(config.lease_retry_period),
                            to_go_duration(config.lease_renew_deadline)));
  }
  return {};
}

// With code of builders, a host can do without a compiler.
Result<> resolve_compiler(Config& config) {
  if (config.native_code_dir.empty() != config.builder_keys.empty()) {
    return fail(ErrorKind::InvalidInput,
                "native-code-dir and builder-keys belong together: set both, or neither");
  }
  if (!config.compiler.empty()) return {};
  Result<std::filesystem::path> found = beside_this_program("hangar-compile", "compiler");
  if (found) {
    config.compiler = *std::move(found);
    return {};
  }
  if (config.native_code_dir.empty()) return std::unexpected(std::move(found).error());
  const bool verifies_modules = !config.module_policy.empty() ||
                                !config.module_verification_keys.empty() ||
                                !config.module_verification_keys_secret.empty();
  if (!verifies_modules) return {};
  return std::unexpected(
      std::move(found).error().in("signatures of modules are verified by hangar-compile"));
}

}  // namespace

std::string lease_namespace(const Config& config, std::string_view own) {
  if (!config.namespace_.empty()) return config.namespace_;
  return std::string(own.empty() ? "default" : own);
}

Result<Config> resolve(Config config) {
  if (config.module_cache_dir.empty()) {
    config.module_cache_dir = user_cache_directory() / "hangar" / "modules";
  }
  HANGAR_TRY(resolve_compiler(config));
  config.guest_isolation = config.guest_isolation.value_or(domains::Isolation::None);
  if (config.guest_program.empty() && config.guest_isolation != domains::Isolation::None) {
    config.guest_program =
        HANGAR_TRY(beside_this_program("hangar-guest", "guest-program",
                                       "; with --guest-isolation=none guests run in this process"));
  }
  if (config.guest_threads == 0) {
    config.guest_threads = std::max(1U, std::thread::hardware_concurrency());
  }
  if (config.max_concurrent_reconciles == 0) {
    return fail(ErrorKind::InvalidInput, "max-concurrent-reconciles must be at least 1");
  }
  if (!config.module_verification_keys.empty() && !config.module_verification_keys_secret.empty()) {
    return fail(
        ErrorKind::InvalidInput,
        "module-verification-keys and module-verification-keys-secret are both set: set only "
        "one of them");
  }
  if (config.module_cache_bytes != 0 && config.module_cache_bytes < kModuleCacheBytesMin) {
    return fail(ErrorKind::InvalidInput, fmt::format("module-cache-size must be at least {}",
                                                     budget::size_text(kModuleCacheBytesMin)));
  }
  config.recorder_bytes = disk_shares(config).records;
  HANGAR_TRY(check_lease(config));
  HANGAR_TRY(check(config.nodes));
  HANGAR_TRY(check(config.webhooks));
  HANGAR_TRY(check_seeing(config));
  HANGAR_TRY(check_tracing(config));
  return config;
}

Result<Config> resolve_for_guests(Config config) {
  if (!config.guest_isolation) config.guest_isolation = domains::Isolation::Namespace;
  return resolve(std::move(config));
}

}  // namespace hangar::host
