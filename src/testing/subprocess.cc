#include "testing/subprocess.h"

#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <system_error>
#include <vector>

namespace hangar::testing {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() {
    if (number_ >= 0) ::close(number_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

// Files in memory instead of pipes: no thread has to read while the program writes, and a program
// that exits early raises no SIGPIPE here.
int memory_file(const char* name) {
  return ::memfd_create(name, MFD_CLOEXEC);
}

bool write_all(int file, const std::string& text) {
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t count = ::write(file, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    written += static_cast<std::size_t>(count);
  }
  return ::lseek(file, 0, SEEK_SET) == 0;
}

std::string read_all(int file) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::pread(file, buffer, sizeof buffer, static_cast<off_t>(text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

// Its own copies for the child; entries of `added` replace those of this process.
std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> result = added;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string inherited = *entry;
    const std::string name = inherited.substr(0, inherited.find('=') + 1);
    bool replaced = false;
    for (const std::string& variable : added)
      replaced = replaced || variable.starts_with(name);
    if (!replaced) result.push_back(inherited);
  }
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Waits for the process without reaping it. False if it still runs at the deadline.
bool ended_within(pid_t pid, std::chrono::seconds deadline) {
  // The system call itself: Debian 12's <sys/pidfd.h> declares its wrapper without C linkage.
  const FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto end = std::chrono::steady_clock::now() + deadline;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd poll_for{.fd = process.number(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&poll_for, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

}  // namespace

Result<Finished> run(const Command& command) {
  const FileDescriptor input(memory_file("stdin"));
  const FileDescriptor output(memory_file("stdout"));
  const FileDescriptor errors(memory_file("stderr"));
  if (!write_all(input.number(), command.input)) {
    return fail(ErrorKind::Unavailable,
                fmt::format("memory file: {}", std::generic_category().message(errno)));
  }

  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, input.number(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, output.number(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, errors.number(), STDERR_FILENO);
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = environment_with(command.environment);
  pid_t pid = 0;
  const int spawned =
      ::posix_spawnp(&pid, arguments.front().c_str(), &files, nullptr,
                     pointers_to(arguments).data(), pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&files);
  if (spawned != 0) {
    return fail(ErrorKind::NotFound, fmt::format("start {}: {}", arguments.front(),
                                                 std::generic_category().message(spawned)));
  }

  const bool in_time = ended_within(pid, command.deadline);
  if (!in_time) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("{} did not exit within {} s: {}", arguments.front(),
                            command.deadline.count(), read_all(errors.number())));
  }
  return Finished{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                  .output = read_all(output.number()),
                  .errors = read_all(errors.number())};
}

}  // namespace hangar::testing
