#include "commands/program.h"

#include "base/result.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace hangar::commands {

namespace {

namespace fs = std::filesystem;

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// This process's environment with the variables of `changes` as they are there.
std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> result = changes;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, std::min(text.find('=') + 1, text.size()));
    const bool is_changed = std::ranges::any_of(
        changes, [name](const std::string& change) { return change.starts_with(name); });
    if (!is_changed) result.emplace_back(text);
  }
  return result;
}

}  // namespace

bool is_program(const fs::path& path) {
  return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

std::optional<fs::path> find_on_path(std::string_view name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread changes it.
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    fs::path candidate = fs::path(rest.substr(0, end)) / name;
    if (end > 0 && is_program(candidate)) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

Result<> run_program(ProgramRun run) {
  const std::string name = run.program.string();
  run.arguments.insert(run.arguments.begin(), name);
  std::vector<std::string> environment = environment_with(run.environment);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addchdir_np(&actions, run.directory.c_str());
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, name.c_str(), &actions, nullptr, pointers_to(run.arguments).data(),
                    pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return fail(ErrorKind::Unavailable,
                fmt::format("run {}: {}", name, std::generic_category().message(error)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(ErrorKind::InvalidInput, fmt::format("{} {}", name, run.failed));
}

}  // namespace hangar::commands
