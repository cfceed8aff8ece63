#include "cli/tenant_commands.h"

#include "base/dns_name.h"
#include "base/log.h"
#include "base/result.h"
#include "host/log.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

namespace hangar::cli {

namespace {

commands::DryRun dry_run_of(const std::string& text) {
  if (text == "client") return commands::DryRun::Client;
  return text == "server" ? commands::DryRun::Server : commands::DryRun::None;
}

commands::ManifestFormat format_of(const std::string& text) {
  if (text == "yaml") return commands::ManifestFormat::Yaml;
  return text == "json" ? commands::ManifestFormat::Json : commands::ManifestFormat::None;
}

std::string check_account_name(const std::string& name) {
  if (is_dns_subdomain(name)) return {};
  return fmt::format("\"{}\" must be the name of a service account", name);
}

// Settings for the connection, and the features: the rights depend on those.
SettingFlags settings_of(CLI::App& command) {
  return {command, {host::Part::Log, host::Part::Cluster, host::Part::Features}};
}

void add_namespace(CLI::App& command, std::string& namespace_) {
  const auto check = [](const std::string& name) {
    return name.empty() ? std::string("must not be empty") : check_namespace(name);
  };
  command.add_option("NAMESPACE", namespace_, "the namespace")
      ->type_name("NAMESPACE")
      ->required()
      ->check(check);
}

void add_host(CLI::App& command, std::string& host) {
  command
      .add_option("--host", host,
                  "ServiceAccount of the host, as namespace:name (default hangar-system:hangar)")
      ->type_name("NAMESPACE:NAME");
}

void add_dry_run(CLI::App& command, std::string& dry_run) {
  command
      .add_option("--dry-run", dry_run,
                  "none, client (send nothing to the cluster) or server (default none)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"none", "client", "server"}));
}

// Prints `text`, or the error of `result`. Returns the exit code.
template <class T>
int finish(const Result<T>& result, const std::string& text) {
  if (!result) {
    return report(result.error(),
                  result.error().kind() == ErrorKind::InvalidInput ? kWrongUsage : kFailed);
  }
  fmt::print("{}", text);
  return kDone;
}

}  // namespace

TenantCommands::TenantCommands(CLI::App& tenant)
    : allow_(tenant.add_subcommand(
          "allow", "let hangar act in a namespace, with exactly the rights named here")),
      list_(tenant.add_subcommand("list", "list the namespaces in which hangar may act")),
      remove_(tenant.add_subcommand("remove", "remove hangar's rights to act in a namespace")),
      allow_settings_(settings_of(*allow_)),
      list_settings_(settings_of(*list_)),
      remove_settings_(settings_of(*remove_)) {
  tenant.require_subcommand(1);
  add_namespace(*allow_, flags_->namespace_);
  allow_
      ->add_option(
          "--service-account", flags_->allow.rights.service_accounts,
          "ServiceAccount that hangar may act as, repeatable (default: all of the namespace)")
      ->type_name("NAME")
      ->check(check_account_name);
  allow_->add_flag("--cluster-reach", flags_->allow.cluster_reach,
                   "let hangar use the rights of these ServiceAccounts in all namespaces, not only "
                   "in allowed ones");
  add_host(*allow_, flags_->host);
  add_dry_run(*allow_, flags_->dry_run);
  allow_
      ->add_option("-o,--output", flags_->output,
                   "print the objects that are written: yaml or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"yaml", "json"}));

  list_->add_option("-o,--output", flags_->output, "output format: yaml or json (default: a table)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"yaml", "json"}));

  add_namespace(*remove_, flags_->namespace_);
  add_host(*remove_, flags_->host);
  add_dry_run(*remove_, flags_->dry_run);
}

int TenantCommands::run() const {
  if (allow_->parsed()) return allow();
  return list_->parsed() ? list() : remove();
}

int TenantCommands::allow() const {
  const Result<host::Config> config = allow_settings_.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  Result<commands::ServiceAccount> host = commands::parse_service_account(flags_->host);
  if (!host) return report(std::move(host).error().in("--host"), kWrongUsage);
  commands::AllowTenantOptions options = flags_->allow;
  options.rights.namespace_ = flags_->namespace_;
  options.rights.features = config->features;
  options.rights.host = *std::move(host);
  options.dry_run = dry_run_of(flags_->dry_run);
  options.format = format_of(flags_->output);
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<commands::TenantOutput> output =
      commands::allow_tenant(*config, options, Log(*sink, "tenant"));
  if (output && !output->warning.empty()) {
    fmt::print(stderr, "hangar: warning: {}\n", output->warning);
  }
  return finish(output, output ? output->text : std::string());
}

int TenantCommands::list() const {
  const Result<host::Config> config = list_settings_.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<std::string> text =
      commands::list_tenants(*config, format_of(flags_->output), Log(*sink, "tenant"));
  return finish(text, text ? *text : std::string());
}

int TenantCommands::remove() const {
  const Result<host::Config> config = remove_settings_.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  Result<commands::ServiceAccount> host = commands::parse_service_account(flags_->host);
  if (!host) return report(std::move(host).error().in("--host"), kWrongUsage);
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<std::string> text = commands::remove_tenant(*config,
                                                           {.namespace_ = flags_->namespace_,
                                                            .host = *std::move(host),
                                                            .dry_run = dry_run_of(flags_->dry_run)},
                                                           Log(*sink, "tenant"));
  return finish(text, text ? *text : std::string());
}

}  // namespace hangar::cli
