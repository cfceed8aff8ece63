#include "commands/demo.h"

#include "base/result.h"
#include "io/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScript = "show.sh";

// PREFIX/bin/hangar has it in PREFIX/share, and PREFIX/libexec/hangar/hangar, too.
Result<fs::path> installed_script(const fs::path& program) {
  constexpr std::array<std::string_view, 2> kPrefixes = {"..", "../.."};
  for (const std::string_view prefix : kPrefixes) {
    const fs::path script =
        (program.parent_path() / prefix / "share/hangar/demo" / kScript).lexically_normal();
    std::error_code error;
    if (fs::exists(script, error)) return script;
  }
  return fail(
      ErrorKind::NotFound,
      fmt::format("the demonstration is not installed with {}: there is no {}. make install and "
                  "the Debian package install it, the container image does not have it; "
                  "--directory names one that is elsewhere. In the source tree: make demo",
                  program.string(),
                  (program.parent_path() / kPrefixes[0] / "share/hangar/demo" / kScript)
                      .lexically_normal()
                      .string()));
}

Result<fs::path> find_script(const fs::path& directory, const fs::path& program) {
  if (directory.empty()) return installed_script(program);
  fs::path script = directory / kScript;
  std::error_code error;
  if (fs::exists(script, error)) return script;
  return fail(ErrorKind::NotFound, fmt::format("--directory: there is no {}", script.string()));
}

}  // namespace

Error run_demo(const DemoOptions& options) {
  const Result<fs::path> program = io::own_program();
  if (!program) return program.error();
  Result<fs::path> script = find_script(options.directory, *program);
  if (!script) return std::move(script).error();

  std::vector<std::string> words = {script->string(), "--hangar", program->string()};
  if (!options.context.empty()) words.insert(words.end(), {"--context", options.context});
  if (options.is_confirmed) words.emplace_back("--yes");
  if (options.work == DemoWork::Clean) words.emplace_back("--clean");
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);

  // NOLINTNEXTLINE(concurrency-mt-unsafe): this process has one thread.
  if (!options.kubeconfig.empty() && ::setenv("KUBECONFIG", options.kubeconfig.c_str(), 1) != 0) {
    return {ErrorKind::Unavailable, "KUBECONFIG cannot be set"};
  }
  // The script's pipes end by it.
  (void)std::signal(SIGPIPE, SIG_DFL);
  ::execv(script->c_str(), arguments.data());
  const std::error_code failed(errno, std::generic_category());
  return {ErrorKind::Unavailable, fmt::format("{}: {}", script->string(), failed.message())};
}

}  // namespace hangar::commands
