#include "cli/module_commands.h"

#include "base/invalid.h"
#include "base/log.h"
#include "base/result.h"
#include "cli/go_flags.h"
#include "cli/release_commands.h"
#include "cli/standard_streams.h"
#include "commands/limits.h"
#include "commands/module_signing.h"
#include "commands/streams.h"
#include "host/config.h"
#include "schematics/sections.h"
#include "schematics/signature.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace hangar::cli {

namespace {

using commands::Finished;
using host::Part;

}  // namespace

ModuleCommands::ModuleCommands(CLI::App& app)
    : schematics_(
          add_command(app, "schematics",
                      "list, show or set a module's schematics: metadata in its custom sections",
                      {"meta"}),
          {Part::Log, Part::Modules, Part::Policy, Part::Walls}),
      sign_(add_command(app, "sign", "sign a module, with the signature in a custom section"),
            {Part::Log}),
      verify_(add_command(app, "verify",
                          "verify a module's signature against public keys, or by a module policy"),
              {Part::Log, Part::Modules, Part::Policy}) {
  CLI::App& schematics = *app.get_subcommand("schematics");
  schematics.add_option("--wasm", flags_->module, "module: a file or a URL; set needs a file")
      ->type_name("FILE|URL");
  schematics
      .add_option("ACTION", flags_->action,
                  "ls, get NAME, or set NAME to the contents of standard input")
      ->type_name("ACTION");
  schematics.add_option("NAME", flags_->name, "name of the property")->type_name("NAME");
  schematics.add_flag("--cmd", flags_->is_command,
                      "for set: the input is an array of arguments (JSON or YAML); run with them, "
                      "the module prints the property");

  CLI::App& sign = *app.get_subcommand("sign");
  sign.add_option("MODULE", flags_->module, "the module")->type_name("FILE");
  sign.add_option("--key", flags_->key, "private key in PEM: RSA, ECDSA or Ed25519")
      ->type_name("FILE");
  sign.add_option("-o", flags_->out, "output file (default: overwrite the module)")
      ->type_name("FILE");
  sign.add_flag("-f", flags_->force, "replace an existing signature");

  CLI::App& verify = *app.get_subcommand("verify");
  verify
      .add_option("MODULE", flags_->module,
                  "the module: a file; with --module-policy and without --key also a URL")
      ->type_name("FILE|URL");
  verify
      .add_option(
          "--key", flags_->key,
          "key in PEM, or directory of keys (.pem); a private key stands for its public key")
      ->type_name("FILE|DIRECTORY");
}

std::vector<const CLI::App*> ModuleCommands::apps() const {
  return {&schematics_.app(), &sign_.app(), &verify_.app()};
}

std::vector<std::string> ModuleCommands::read(std::vector<std::string> arguments) const {
  return read_go_flags(std::move(arguments), apps());
}

bool ModuleCommands::parsed() const {
  return std::ranges::any_of(apps(), [](const CLI::App* one) { return one->parsed(); });
}

int ModuleCommands::run() const {
  if (schematics_.parsed()) return schematics();
  return sign_.parsed() ? sign() : verify();
}

Result<> ModuleCommands::check_schematics() const {
  if (flags_->module.empty()) return invalid("--wasm is required");
  if (flags_->action.empty()) return invalid("no subcommand given to schematics");
  if (flags_->action == "ls") return {};
  if (flags_->action != "get" && flags_->action != "set") {
    return invalid(fmt::format("unknown schematics subcommand: \"{}\"", flags_->action));
  }
  if (flags_->name.empty()) return invalid("name of schematics property is required");
  return {};
}

int ModuleCommands::schematics() const {
  const commands::Streams streams{.out = print, .say = say};
  return schematics_.run(
      check_schematics(), [&](const host::Config& config, const Log& log) -> Result<Finished> {
        if (flags_->action == "ls") {
          return commands::list_schematics(config, flags_->module, streams, log);
        }
        if (flags_->action == "get") {
          return commands::get_schematic(config, flags_->module, flags_->name, streams, log);
        }
        commands::SetSchematicOptions options{.module = flags_->module, .name = flags_->name};
        if (flags_->is_command) options.kind = schematics::Kind::Command;
        options.contents = HANGAR_TRY(read_standard_input(limits::kSchematicInputBytesMax));
        return commands::set_schematic(options);
      });
}

Result<> ModuleCommands::check_files() const {
  if (flags_->module.empty()) return invalid("wasm file must be specified as first argument");
  if (flags_->key.empty()) return invalid("key is required");
  return {};
}

int ModuleCommands::sign() const {
  return sign_.run(check_files(), [this](const host::Config& /*config*/, const Log& /*log*/) {
    return commands::sign(
        {.module = flags_->module,
         .key = flags_->key,
         .out = flags_->out,
         .is_signed = flags_->force ? schematics::Signed::Replace : schematics::Signed::Refuse});
  });
}

int ModuleCommands::verify() const {
  const auto check = [this]() -> Result<> {
    if (flags_->module.empty()) return invalid("wasm file must be specified as first argument");
    return {};
  };
  return verify_.run(
      check(), [this](const host::Config& config, const Log& log) -> Result<Finished> {
        if (flags_->key.empty() && config.module_policy.empty()) {
          return invalid("key is required");
        }
        if (!flags_->key.empty()) {
          HANGAR_TRY(commands::verify({.module = flags_->module, .keys = flags_->key}));
        }
        if (config.module_policy.empty()) return Finished{};
        return commands::verify_by_policy(config, flags_->module, log);
      });
}

}  // namespace hangar::cli
