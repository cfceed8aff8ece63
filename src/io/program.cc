#include "io/program.h"

#include "base/result.h"
#include "base/text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is POSIX's.
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::io {

namespace {

namespace fs = std::filesystem;

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<char*> to_array(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> start(const Program& program, int output) {
  std::vector<std::string> arguments = {program.path.string()};
  arguments.insert(arguments.end(), program.arguments.begin(), program.arguments.end());
  std::vector<std::string> environment = environment_with(program.environment);
  const std::vector<char*> argv = to_array(arguments);
  const std::vector<char*> variables = to_array(environment);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (!program.directory.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&actions, program.directory.c_str());
  }
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, argv.front(), &actions, nullptr, argv.data(), variables.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return child;
  return fail(ErrorKind::Unavailable, fmt::format("run {}: {}", program.path.string(),
                                                  std::generic_category().message(error)));
}

Result<int> wait_for(pid_t child, const Program& program) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return fail(ErrorKind::Unavailable,
              fmt::format("{} was ended by signal {}", program.path.string(), WTERMSIG(status)));
}

}  // namespace

std::vector<std::string> environment_with(const std::vector<std::string>& extra) {
  std::vector<std::string> all = extra;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const bool is_replaced = std::ranges::any_of(
        extra, [&](const std::string& one) { return name_of(one) == name_of(*variable); });
    if (!is_replaced) all.emplace_back(*variable);
  }
  return all;
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

Result<fs::path> find_program(std::string_view name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread changes it.
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const fs::path candidate = fs::path(rest.substr(0, end)) / name;
    if (end > 0 && is_program(candidate)) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return fail(ErrorKind::NotFound, fmt::format("no {} on PATH", name));
}

Result<int> run_program(const Program& program) {
  const pid_t child = HANGAR_TRY(start(program, STDERR_FILENO));
  return wait_for(child, program);
}

Result<ProgramOutput> read_program(const Program& program, std::uint64_t bytes_max) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorKind::Unavailable,
                fmt::format("create a pipe: {}", std::generic_category().message(errno)));
  }
  const Result<pid_t> child = start(program, ends[1]);
  ::close(ends[1]);
  ProgramOutput output;
  bool is_too_much = false;
  while (child) {
    constexpr std::size_t kStep = 64 * 1024;
    const std::size_t before = output.text.size();
    output.text.resize(before + kStep);
    const ssize_t count = ::read(ends[0], output.text.data() + before, kStep);
    output.text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    is_too_much = output.text.size() > bytes_max;
    if (count <= 0 || is_too_much) break;
  }
  ::close(ends[0]);
  if (!child) return std::unexpected(child.error());
  if (is_too_much) ::kill(*child, SIGKILL);
  const Result<int> exit_code = wait_for(*child, program);
  if (is_too_much) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("{} prints more than {} bytes", program.path.string(), bytes_max));
  }
  output.exit_code = HANGAR_TRY(exit_code);
  return output;
}

struct Companion::Printed {
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;  // The beginning of its output, if there is much.
  bool has_ended = false;
};

Result<std::unique_ptr<Companion>> Companion::start(const Program& program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorKind::Unavailable,
                fmt::format("create a pipe: {}", std::generic_category().message(errno)));
  }
  Descriptor output(ends[0]);
  const Descriptor input(ends[1]);
  std::vector<std::string> arguments = {program.path.string()};
  arguments.insert(arguments.end(), program.arguments.begin(), program.arguments.end());
  std::vector<std::string> environment = environment_with(program.environment);
  const std::vector<char*> argv = to_array(arguments);
  const std::vector<char*> variables = to_array(environment);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    return fail(ErrorKind::Unavailable, fmt::format("run {}: {}", program.path.string(),
                                                    std::generic_category().message(errno)));
  }
  if (child == 0) {
    // Between fork and exec nothing may allocate: other threads may have held the heap's locks.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);  // The parent has exited in between.
    // A parent that takes signals as events has blocked them; the program must not inherit that.
    ::sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(input.value(), STDOUT_FILENO);
    ::dup2(input.value(), STDERR_FILENO);
    ::execve(argv.front(), argv.data(), variables.data());
    ::_exit(127);
  }
  return std::unique_ptr<Companion>(
      new Companion(program.path.filename().string(), child, std::move(output)));
}

Companion::Companion(std::string name, int child, Descriptor output)
    : name_(std::move(name)),
      child_(child),
      printed_(std::make_shared<Printed>()),
      reader_([printed = printed_, output = std::move(output)] {
        constexpr std::size_t kTextMax = 64 * 1024;
        std::array<char, 4096> piece{};
        while (true) {
          const ssize_t count = ::read(output.value(), piece.data(), piece.size());
          if (count < 0 && errno == EINTR) continue;
          const std::lock_guard lock(printed->mutex);
          if (count <= 0) printed->has_ended = true;
          if (count > 0 && printed->text.size() < kTextMax) {
            printed->text.append(piece.data(), static_cast<std::size_t>(count));
          }
          printed->changed.notify_all();
          if (count <= 0) return;
        }
      }) {}

Companion::~Companion() {
  ::kill(child_, SIGKILL);
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  // Children of the program may hold the pipe for longer; the thread owns all that it needs.
  reader_.detach();
}

Result<std::string> Companion::wait_for_line(std::string_view beginning, Duration time_max) {
  std::unique_lock lock(printed_->mutex);
  std::string last;
  const auto find = [&]() -> std::optional<std::string> {
    std::string_view rest = printed_->text;
    for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end + 1);
      if (line.starts_with(beginning)) return std::string(line.substr(beginning.size()));
      if (!line.empty()) last = line;
    }
    if (!rest.empty()) last = rest;
    return std::nullopt;
  };
  std::optional<std::string> found;
  printed_->changed.wait_for(lock, time_max,
                             [&] { return (found = find()) || printed_->has_ended; });
  if (found) return *std::move(found);
  return fail(ErrorKind::Unavailable,
              fmt::format("{} {}: {}", name_, printed_->has_ended ? "has ended" : "does not answer",
                          last.empty() ? "it printed nothing" : printable(last)));
}

}  // namespace hangar::io
