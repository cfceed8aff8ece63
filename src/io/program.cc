#include "io/program.h"

#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "base/utf8.h"
#include "io/loop.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is POSIX's.
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
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
  pointers.reserve(texts.size());
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};
Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorKind::Unavailable,
                fmt::format("create a pipe: {}", std::generic_category().message(errno)));
  }
  return Pipe{.read_end = Descriptor(ends[0]), .write_end = Descriptor(ends[1])};
}

// How a program starts, besides the fields of Program.
struct Start {
  int output = STDERR_FILENO;
  // Set for programs that are independent of this process: their standard error. They get no
  // standard input, default signals, and their own process group or session.
  std::optional<int> errors = std::nullopt;
  bool has_session = false;
};

Result<pid_t> start(const Program& program, const Start& how) {
  std::vector<std::string> arguments = {program.path.string()};
  arguments.insert(arguments.end(), program.arguments.begin(), program.arguments.end());
  std::vector<std::string> environment = environment_with(program.environment);
  const std::vector<char*> argv = to_array(arguments);
  const std::vector<char*> variables = to_array(environment);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  if (!program.directory.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&actions, program.directory.c_str());
  }
  ::posix_spawn_file_actions_adddup2(&actions, how.output, STDOUT_FILENO);
  if (how.errors) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, *how.errors, STDERR_FILENO);
    // It must not inherit which signals this process blocks or ignores.
    ::sigset_t none;
    ::sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(
        &attributes,
        static_cast<short>((how.has_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP) |
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, argv.front(), &actions, &attributes, argv.data(), variables.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error == 0) return child;
  return fail(
      error == ENOENT ? ErrorKind::NotFound : ErrorKind::Unavailable,
      fmt::format("run {}: {}", program.path.string(), std::generic_category().message(error)));
}

int wait_status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Result<int> wait_for(pid_t child, const Program& program) {
  const int status = wait_status_of(child);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return fail(ErrorKind::Unavailable,
              fmt::format("{} was killed by signal {}", program.path.string(), WTERMSIG(status)));
}

// The leader of a process group. The destructor kills the group unless wait() has reaped
// the leader.
class Group {
 public:
  explicit Group(pid_t leader) : leader_(leader) {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    if (leader_ <= 0) return;
    ::kill(-leader_, SIGKILL);
    wait_status_of(leader_);
  }

  int wait() { return wait_status_of(std::exchange(leader_, -1)); }

 private:
  pid_t leader_;
};

// Reads the bytes that are available; closes the descriptor at the end of the stream.
Result<> drain(Descriptor& from, std::string& into, std::uint64_t bytes_max) {
  std::array<char, 16384> buffer{};
  const ssize_t count = ::read(from.value(), buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return {};
  if (count <= 0) {
    from.close();
    return {};
  }
  into.append(buffer.data(), static_cast<std::size_t>(count));
  if (into.size() > bytes_max) {
    return fail(ErrorKind::Unavailable, fmt::format("printed more than {} bytes", bytes_max));
  }
  return {};
}

struct Stream {
  Descriptor end;
  std::string text = {};
};

// Reads until both streams end, which is when the program and all its children have closed them.
Result<> read_both(Stream& output, Stream& errors, const ProgramBounds& bounds,
                   const std::stop_token& stop) {
  const Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::stop_callback on_stop(stop, [&wake] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake.value(), &one, sizeof one);
  });
  using std::chrono::milliseconds;
  const Instant until = Loop::now() + bounds.deadline;
  while (output.end.is_open() || errors.end.is_open()) {
    if (stop.stop_requested()) return fail(ErrorKind::Cancelled, "stopping");
    const auto left = std::chrono::ceil<milliseconds>(until - Loop::now());
    if (left <= milliseconds::zero()) {
      return fail(ErrorKind::Unavailable,
                  fmt::format("did not exit within {}", to_go_duration(bounds.deadline)));
    }
    // A closed descriptor is -1, which poll ignores.
    std::array<pollfd, 3> waits{{{output.end.value(), POLLIN, 0},
                                 {errors.end.value(), POLLIN, 0},
                                 {wake.value(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
      return fail(ErrorKind::Unavailable,
                  fmt::format("poll: {}", std::generic_category().message(errno)));
    }
    if (waits[0].revents != 0) HANGAR_TRY(drain(output.end, output.text, bounds.bytes_max));
    if (waits[1].revents != 0) HANGAR_TRY(drain(errors.end, errors.text, bounds.bytes_max));
  }
  return {};
}

// The end of its stderr, on one line, to append to a message.
std::string last_words(std::string_view errors) {
  constexpr std::size_t kEnough = 1024;
  while (errors.ends_with('\n') || errors.ends_with(' '))
    errors.remove_suffix(1);
  std::string words(utf8_end(errors, kEnough));
  for (char& character : words) {
    if (static_cast<unsigned char>(character) < 0x20) character = ' ';
  }
  return words.empty() ? words : ": " + words;
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

Result<fs::path> own_program() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return fail(ErrorKind::Unavailable, "find the own program: " + error.message());
  return program;
}

Result<fs::path> find_program(std::string_view name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread changes it.
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    fs::path candidate = fs::path(rest.substr(0, end)) / name;
    if (end > 0 && is_program(candidate)) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return fail(ErrorKind::NotFound, fmt::format("no {} on PATH", name));
}

Result<int> run_program(const Program& program) {
  const pid_t child = HANGAR_TRY(start(program, {}));
  return wait_for(child, program);
}

Result<std::string> run_bounded(const Program& program, const ProgramBounds& bounds,
                                const std::stop_token& stop) {
  Pipe output_pipe = HANGAR_TRY(make_pipe());
  Pipe errors_pipe = HANGAR_TRY(make_pipe());
  Group group(HANGAR_TRY(start(program, {.output = output_pipe.write_end.value(),
                                         .errors = errors_pipe.write_end.value()})));
  output_pipe.write_end.close();
  errors_pipe.write_end.close();
  Stream output{.end = std::move(output_pipe.read_end)};
  Stream errors{.end = std::move(errors_pipe.read_end)};
  if (const Result<> read = read_both(output, errors, bounds, stop); !read) {
    return fail(read.error().kind(), read.error().message() + last_words(errors.text));
  }
  const int status = group.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::move(output.text);
  const std::string how = WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                            : fmt::format("signal {}", WTERMSIG(status));
  return fail(ErrorKind::Unavailable, how + last_words(errors.text));
}

Result<ProgramOutput> read_program(const Program& program, std::uint64_t bytes_max) {
  Pipe pipe = HANGAR_TRY(make_pipe());
  const pid_t child = HANGAR_TRY(start(program, {.output = pipe.write_end.value()}));
  pipe.write_end.close();
  ProgramOutput output;
  bool is_too_much = false;
  while (true) {
    constexpr std::size_t kStep = 64 * 1024;
    const std::size_t before = output.text.size();
    output.text.resize(before + kStep);
    const ssize_t count = ::read(pipe.read_end.value(), output.text.data() + before, kStep);
    output.text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    is_too_much = output.text.size() > bytes_max;
    if (count <= 0 || is_too_much) break;
  }
  pipe.read_end.close();
  if (is_too_much) ::kill(child, SIGKILL);
  const Result<int> exit_code = wait_for(child, program);
  if (is_too_much) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("{} prints more than {} bytes", program.path.string(), bytes_max));
  }
  output.exit_code = HANGAR_TRY(exit_code);
  return output;
}

Result<> start_detached(const Program& program) {
  const Descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing.is_open()) {
    return fail(ErrorKind::Unavailable,
                fmt::format("open /dev/null: {}", std::generic_category().message(errno)));
  }
  const Result<pid_t> started =
      start(program, {.output = nothing.value(), .errors = nothing.value(), .has_session = true});
  if (!started) return std::unexpected(started.error());
  return {};
}

struct Companion::Printed {
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;  // The beginning of its output, if there is much.
  bool has_ended = false;
};

Result<std::unique_ptr<Companion>> Companion::start(const Program& program) {
  Pipe pipe = HANGAR_TRY(make_pipe());
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
    ::sigprocmask(SIG_SETMASK, &none, nullptr);  // NOLINT(concurrency-mt-unsafe): one thread.
    ::dup2(pipe.write_end.value(), STDOUT_FILENO);
    ::dup2(pipe.write_end.value(), STDERR_FILENO);
    ::execve(argv.front(), argv.data(), variables.data());
    ::_exit(127);
  }
  return std::unique_ptr<Companion>(
      new Companion(program.path.filename().string(), child, std::move(pipe.read_end)));
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
  wait_status_of(child_);
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
  return fail(
      ErrorKind::Unavailable,
      fmt::format("{} {}: {}", name_, printed_->has_ended ? "has exited" : "does not answer",
                  last.empty() ? "(no output)" : printable(last)));
}

}  // namespace hangar::io
