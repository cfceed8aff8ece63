#include "cli/build_commands.h"

#include "base/log.h"
#include "base/result.h"
#include "cli/last_line.h"
#include "cli/setting_flags.h"
#include "cli/standard_streams.h"
#include "commands/build_code.h"
#include "commands/build_go.h"
#include "commands/streams.h"
#include "host/config.h"
#include "host/log.h"

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
      go_settings_(*go_, {host::Part::Modules}),
      code_(build.add_subcommand("code",
                                 "compile modules to native code and sign it, for hosts without a "
                                 "compiler (--native-code-dir)")),
      code_settings_(*code_, {host::Part::Log, host::Part::Modules}) {
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

  commands::BuildCodeOptions& code = *code_options_;
  code_->add_option("MODULE", code.modules, "modules: files, or URLs as in a manifest")
      ->type_name("FILE|URL");
  code_->add_option("--key", code.key, "the builder's private key in PEM: RSA, ECDSA or Ed25519")
      ->type_name("FILE")
      ->required();
  code_->add_option("-o,--output", code.output, "directory for the code and its signatures")
      ->type_name("DIRECTORY")
      ->required();
  code_->add_flag("--interpreters", code.with_interpreters,
                  "also the interpreters that hangar contains: JavaScript's for machines of "
                  "workflows, Lua's for readiness rules");
  code_
      ->add_option_function<std::string>(
          "--processor",
          [&code](const std::string& text) {
            code.processor =
                text == "this" ? commands::CodeProcessor::This : commands::CodeProcessor::Any;
          },
          "processors that the code is for: any of this architecture, or this with all of its "
          "features, whose code is faster (default: any)")
      ->type_name("any|this")
      ->check(CLI::IsMember({"any", "this"}));
}

int BuildCommands::run() const {
  return code_->parsed() ? run_code() : run_go();
}

int BuildCommands::run_code() const {
  const Result<host::Config> config = code_settings_.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  code_options_->show = last_line();
  const Result<commands::Finished> done = commands::build_code(
      *config, *code_options_, {.out = print, .say = say}, Log(*sink, "build"));
  return done ? kDone : report(done.error(), kFailed);
}

int BuildCommands::run_go() const {
  const Result<host::Config> config = go_settings_.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  const Result<std::string> url = commands::build_go(
      *config, *go_options_, [](std::string_view line) { fmt::print(stderr, "{}\n", line); });
  if (!url) return report(url.error(), kFailed);
  fmt::print("{}\n", *url);
  return kDone;
}

}  // namespace hangar::cli
