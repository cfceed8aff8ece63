#include "cli/atc_program.h"

#include "base/go_bool.h"
#include "base/invalid.h"
#include "base/log.h"
#include "base/result.h"
#include "cli/setting_flags.h"
#include "commands/yoke_kinds.h"
#include "host/config.h"
#include "host/host.h"
#include "host/log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::cli {

namespace {

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// Reads flags as the controller's library does: any number of dashes, letters of either case, a
// value after `=` or as the next word, switches without a value. Words that belong to no flag are
// ignored.
std::map<std::string, std::string> flags_in(std::span<const std::string> arguments) {
  std::map<std::string, std::vector<std::string>> values;
  std::string open;  // The flag that a value may follow.
  const auto close = [&] {
    if (!open.empty() && values[open].empty()) values[open] = {"true"};
    open.clear();
  };
  for (const std::string& argument : arguments) {
    if (argument.starts_with('-')) {
      close();
      const std::size_t begin = std::min(argument.find_first_not_of('-'), argument.size());
      const std::string word = argument.substr(begin);
      const std::size_t equals = word.find('=');
      std::string name = word.substr(0, equals);
      std::ranges::transform(name, name.begin(), lower);
      if (equals == std::string::npos) {
        open = std::move(name);
      } else {
        values[name].push_back(word.substr(equals + 1));
      }
    } else if (!open.empty()) {
      values[std::exchange(open, {})].push_back(argument);
    }
  }
  close();
  std::map<std::string, std::string> flags;
  for (const auto& [name, texts] : values)
    flags[name] = fmt::format("{}", fmt::join(texts, ","));
  return flags;
}

std::string flag_of(std::string_view variable) {
  std::string flag;
  for (const char one : variable)
    flag += one == '_' ? '-' : lower(one);
  return flag;
}

Result<std::int32_t> parse_number(std::string_view text) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return invalid(fmt::format(
      "strconv.ParseInt: parsing \"{}\": {}", text,
      error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax"));
}

// Reads variables and collects all problems, as the controller's library does.
class Reading {
 public:
  Reading(std::span<const std::string> arguments, const Environment& environment)
      : flags_(flags_in(arguments)), environment_(environment) {}

  std::optional<std::string> text(std::string_view variable) {
    known_.push_back(flag_of(variable));
    if (const auto flag = flags_.find(known_.back()); flag != flags_.end()) return flag->second;
    return environment_(variable);
  }
  std::string required(std::string_view variable) {
    const std::optional<std::string> found = text(variable);
    if (!found) problem(variable, "field is required");
    if (found && found->empty()) {
      problem(variable, "field is declared but empty: cannot be empty");
    }
    return found.value_or("");
  }
  bool is_on(std::string_view variable) {
    const std::optional<std::string> found = text(variable);
    if (!found) return false;
    const Result<bool> on = parse_go_bool(*found);
    if (!on) problem(variable, on.error().message());
    return on && *on;
  }
  std::int32_t number(std::string_view variable, std::int32_t otherwise) {
    const std::optional<std::string> found = text(variable);
    if (!found) return otherwise;
    const Result<std::int32_t> number = parse_number(*found);
    if (!number) problem(variable, number.error().message());
    return number ? *number : otherwise;
  }

  void problem(std::string_view variable, std::string_view what) {
    problems_.push_back(fmt::format("{}: {}", variable, what));
  }
  [[nodiscard]] Result<> check() {
    if (problems_.empty()) return {};
    std::ranges::sort(problems_);
    return invalid(fmt::format("failed to parse variable(s): {}", fmt::join(problems_, "; ")));
  }
  // Flags that are not the name of a variable.
  [[nodiscard]] std::vector<std::string> unknown_flags() const {
    std::vector<std::string> unknown;
    for (const auto& [name, value] : flags_) {
      if (std::ranges::find(known_, name) == known_.end()) unknown.push_back(name);
    }
    return unknown;
  }

 private:
  const std::map<std::string, std::string> flags_;
  const Environment& environment_;
  std::vector<std::string> known_;
  std::vector<std::string> problems_;
};

std::int32_t cores() {
  return static_cast<std::int32_t>(std::max(1U, std::thread::hardware_concurrency()));
}

constexpr std::string_view kHelp =
    "atc: hangar's host, for the Deployment of yoke's Air Traffic Controller\n\n"
    "Each setting is an environment variable or a flag (--cache-fs for CACHE_FS):\n"
    "  PORT                           port that serves webhooks over HTTPS (default 3000)\n"
    "  TLS_CA_CERT, TLS_SERVER_CERT, TLS_SERVER_KEY\n"
    "                                 files with the certificate; required\n"
    "  SVC_NAME, SVC_NAMESPACE, SVC_PORT\n"
    "                                 Service through which the API server reaches them; required\n"
    "  KUBE                           kubeconfig (default: in-cluster)\n"
    "  CONCURRENCY                    concurrent reconciles of a namespace (default: cores)\n"
    "  CACHE_FS                       directory for modules and code (default: TMPDIR, /tmp)\n"
    "  MODULE_ALLOW_LIST              comma-separated globs of module URLs (default: every URL)\n"
    "  MODULE_VERIFICATION_KEYS_PATH  file with public keys: one in PEM, or an array in JSON\n"
    "  DOCKER_CONFIG_SECRET_NAME      Secret with registry credentials, in SVC_NAMESPACE\n"
    "  DISABLE_CUSTOM_READINESS       ignore the readiness rules in ConfigMaps\n"
    "  LOG_FORMAT                     text; anything else means JSON\n"
    "  VERBOSE                        log at level debug\n\n"
    "Every setting of `hangar host` can also be set by its own variable (HANGAR_LOG_LEVEL), which "
    "wins.\n";

}  // namespace

std::string module_cache_in(std::string_view own, std::string_view temporary) {
  const std::string_view directory = own.empty() ? temporary : own;
  return fmt::format("{}/hangar", directory.empty() ? "/tmp" : directory);
}

Result<AtcSettings> read_atc_settings(std::span<const std::string> arguments,
                                      const Environment& environment) {
  Reading reading(arguments, environment);
  AtcSettings read;
  const auto set = [&read](std::string_view setting, std::string text,
                           std::string_view variable = {}) {
    if (text.empty()) return;
    read.entries.push_back({.setting = std::string(setting),
                            .text = std::move(text),
                            .variable = std::string(variable)});
  };
  // The controller always acts as itself, for all namespaces, with modules from any address.
  set("features", "airways,flights");
  set("cluster-flights-as-host", "true");
  set("module-address-allow-list", "private");

  set("webhook-bind-address", fmt::format(":{}", reading.number("PORT", 3000)), "PORT");
  set("kubeconfig", reading.text("KUBE").value_or(""), "KUBE");
  // Twice as many: here one namespace gets at most half of them, with the original it may get all.
  set("max-concurrent-reconciles",
      std::to_string(2 * std::max<std::int64_t>(reading.number("CONCURRENCY", cores()), 1)),
      "CONCURRENCY");
  if (reading.is_on("VERBOSE")) set("log-level", "debug", "VERBOSE");
  set("module-cache-dir",
      module_cache_in(reading.text("CACHE_FS").value_or(""), environment("TMPDIR").value_or("")),
      "CACHE_FS");
  set("module-allow-list", reading.text("MODULE_ALLOW_LIST").value_or(""), "MODULE_ALLOW_LIST");
  set("readiness-rules-from", reading.is_on("DISABLE_CUSTOM_READINESS") ? "-" : "*",
      "DISABLE_CUSTOM_READINESS");
  set("docker-config-secret", reading.text("DOCKER_CONFIG_SECRET_NAME").value_or(""),
      "DOCKER_CONFIG_SECRET_NAME");
  set("webhook-ca-file", reading.required("TLS_CA_CERT"), "TLS_CA_CERT");
  set("webhook-certificate-file", reading.required("TLS_SERVER_CERT"), "TLS_SERVER_CERT");
  set("webhook-key-file", reading.required("TLS_SERVER_KEY"), "TLS_SERVER_KEY");
  const std::string service = reading.required("SVC_NAME");
  const std::string namespace_ = reading.required("SVC_NAMESPACE");
  const std::string port = reading.required("SVC_PORT");
  set("webhook-service", fmt::format("{}/{}:{}", namespace_, service, port), "SVC_PORT");
  set("namespace", namespace_, "SVC_NAMESPACE");
  set("module-verification-keys", reading.text("MODULE_VERIFICATION_KEYS_PATH").value_or(""),
      "MODULE_VERIFICATION_KEYS_PATH");
  set("log-format", environment("LOG_FORMAT") == "text" ? "console" : "json", "LOG_FORMAT");
  HANGAR_TRY(reading.check());

  read.remarks.emplace_back(
      "Flights act as the ServiceAccount default of their namespace, or the one that they name, "
      "and not as this program");
  for (const std::string& flag : reading.unknown_flags())
    read.remarks.push_back(fmt::format("the unknown flag --{} is ignored", flag));
  return read;
}

namespace {

Result<host::Config> config_of(const AtcSettings& given) {
  host::Config config;
  for (const AtcSettings::Entry& entry : given.entries) {
    const auto setting =
        std::ranges::find(host::settings(), std::string_view(entry.setting), &host::Setting::name);
    Result<> set = setting->set(config, entry.text);
    if (!set) {
      return std::unexpected(
          std::move(set).error().in("failed to parse variable(s): " + entry.variable));
    }
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread starts.
  HANGAR_TRY(host::apply_environment(config, [](const char* name) { return std::getenv(name); }));
  return config;
}

std::optional<std::string> variable(std::string_view name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread starts.
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<> prepare_and_run(const host::Config& config, LogSink& sink) {
  // As in yoke: the kinds exist before the controller serves, and webhook configurations that a
  // killed controller left are deleted.
  Result<> applied = commands::apply_yoke_kinds(config, Log(sink, "atc"));
  if (!applied) {
    return std::unexpected(std::move(applied).error().in("failed to apply dependent resources"));
  }
  return host::run_host(config, sink);
}

}  // namespace

int run_atc(std::span<const std::string> arguments) {
  constexpr std::array<std::string_view, 3> kHelpFlags = {"-h", "-help", "--help"};
  const bool asks_for_help = std::ranges::any_of(arguments, [&](const std::string& one) {
    return std::ranges::find(kHelpFlags, one) != kHelpFlags.end();
  });
  if (asks_for_help) {
    fmt::print("{}", kHelp);
    return kDone;
  }
  const Result<AtcSettings> given = read_atc_settings(arguments, variable);
  const Result<host::Config> config =
      given ? config_of(*given) : Result<host::Config>(std::unexpected(given.error()));
  const std::unique_ptr<LogSink> sink = host::make_log_sink(config ? *config : host::Config{});
  const Log log(*sink, "atc");
  if (!config) {
    log.error("program exiting with error",
              {{"error", "failed to load config: " + config.error().message()}});
    return kFailed;
  }
  for (const std::string& remark : given->remarks)
    log.warning("not as with yoke's Air Traffic Controller", {{"remark", remark}});
  const Result<> ended = prepare_and_run(*config, *sink);
  if (ended) return kDone;
  log.error("program exiting with error", {{"error", ended.error().message()}});
  return kFailed;
}

}  // namespace hangar::cli
