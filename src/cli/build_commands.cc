#include "cli/build_commands.h"

#include "base/result.h"
#include "cli/setting_flags.h"
#include "commands/build_go.h"
#include "host/config.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::cli {

BuildCommands::BuildCommands(CLI::App& build)
    : go_(build.add_subcommand("go",
                               "build a Go program that uses controller-runtime as an operator's "
                               "module, with its main unchanged, and print the module's URL")),
      go_settings_(*go_, {host::Part::Modules}) {
  build.require_subcommand(1);
  commands::BuildGoOptions& options = *go_options_;
  go_->add_option("PROGRAM", options.program,
                  "main package: a directory, an import path of the current module, or "
                  "IMPORT-PATH@VERSION from the module proxy")
      ->type_name("DIR|IMPORT-PATH[@VERSION]")
      ->required();
  go_->add_option("-o,--output", options.output,
                  "output file (default: the program's name and .wasm, in the current directory)")
      ->type_name("FILE");
  go_->add_option("--tags", options.tags, "build tags, as for go build")->type_name("TAGS");
  go_->add_option("--ldflags", options.ldflags, "additional linker flags, such as -X")
      ->type_name("FLAGS");
  go_->add_option("--push", options.push,
                  "push the module to a registry, with the credentials of the docker config: "
                  "oci://registry/repository:tag")
      ->type_name("URL");
  go_->add_flag("--insecure", options.insecure,
                "push over plain HTTP, or HTTPS without verifying the certificate, if the registry "
                "offers nothing better");
}

int BuildCommands::run() const {
  const Result<host::Config> config = go_settings_.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  const Result<std::string> url = commands::build_go(
      *config, *go_options_, [](std::string_view line) { fmt::print(stderr, "{}\n", line); });
  if (!url) return report(url.error(), kFailed);
  fmt::print("{}\n", *url);
  return kDone;
}

}  // namespace hangar::cli
