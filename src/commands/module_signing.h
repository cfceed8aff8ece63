// Yoke's commands schematics, sign and verify: they read and write custom sections of a module.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/streams.h"
#include "host/config.h"
#include "schematics/sections.h"
#include "schematics/signature.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace hangar::commands {

// Prints the names of the module's properties. `module`: a file or a URL.
[[nodiscard]] Result<Finished> list_schematics(const host::Config& config,
                                               const std::string& module, const Streams& streams,
                                               const Log& log);

// Prints one property. If the property is a command, runs the module with it and prints the output.
// NotFound.
[[nodiscard]] Result<Finished> get_schematic(const host::Config& config, const std::string& module,
                                             std::string_view name, const Streams& streams,
                                             const Log& log);

struct SetSchematicOptions {
  std::string module;  // A file.
  std::string name;
  schematics::Kind kind = schematics::Kind::Document;
  std::string contents;  // For a command: an array of strings, JSON or YAML.
};
// Changes the file. Errors: InvalidInput.
[[nodiscard]] Result<Finished> set_schematic(const SetSchematicOptions& options);

struct SignOptions {
  std::filesystem::path module;
  std::filesystem::path key;  // A private key.
  std::filesystem::path out;  // Empty: the module's own file.
  schematics::Signed is_signed = schematics::Signed::Refuse;
};
[[nodiscard]] Result<Finished> sign(const SignOptions& options);

struct VerifyOptions {
  std::filesystem::path module;
  std::filesystem::path keys;  // For schematics::load_public_keys.
};
// Denied: the module has no valid signature by one of the keys.
[[nodiscard]] Result<Finished> verify(const VerifyOptions& options);

// Whether a host with the module policy of `config` would let the module run. `module`: a file or a
// URL. Denied, with a remedy.
[[nodiscard]] Result<Finished> verify_by_policy(const host::Config& config,
                                                const std::string& module, const Log& log);

}  // namespace hangar::commands
