// What yoke's commands schematics, sign and verify do with a module: read and write what is kept in
// its custom sections.
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

// Prints the names of what there is. `module`: a file or a URL.
[[nodiscard]] Result<Finished> list_schematics(const host::Config& config,
                                               const std::string& module, const Streams& streams,
                                               const Log& log);

// Prints one; of a command what the module prints when it is run so. NotFound.
[[nodiscard]] Result<Finished> get_schematic(const host::Config& config, const std::string& module,
                                             std::string_view name, const Streams& streams,
                                             const Log& log);

struct SetSchematicOptions {
  std::string module;  // A file.
  std::string name;
  schematics::Kind kind = schematics::Kind::Document;
  std::string contents;  // Of a command: JSON or YAML, an array of strings.
};
// Changes the file. Errors: InvalidInput.
[[nodiscard]] Result<Finished> set_schematic(const SetSchematicOptions& options);

struct SignOptions {
  std::filesystem::path module;
  std::filesystem::path key;  // A private one.
  std::filesystem::path out;  // Empty: the module's own file.
  schematics::Signed is_signed = schematics::Signed::Refuse;
};
[[nodiscard]] Result<Finished> sign(const SignOptions& options);

struct VerifyOptions {
  std::filesystem::path module;
  std::filesystem::path keys;  // As schematics::load_public_keys has it.
};
// Denied, when it is not signed by one of them.
[[nodiscard]] Result<Finished> verify(const VerifyOptions& options);

}  // namespace hangar::commands
