#include "wasm/compiler_process.h"

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "io/descriptor.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/compile_exit.h"
#include "wasm/internal/overseer.h"
#include "wasm/limits.h"
#include "wasm/snapshot/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::wasm {

namespace {

using io::Descriptor;

// The maximum size of the process's stderr; the last line is the message.
constexpr std::size_t kMessageBytesMax = 4096;

std::unexpected<Error> fail_errno(std::string_view doing, int code = errno) {
  return fail(ErrorKind::Unavailable,
              fmt::format("{}: {}", doing, std::generic_category().message(code)));
}

struct Process {
  pid_t pid = -1;
  Descriptor handle;    // A pidfd: readable when the process has exited.
  Descriptor messages;  // The process's stderr.
};

// One run of the program.
struct Job {
  std::filesystem::path program;
  PrivateFile input;
  std::filesystem::path output;  // Empty: no output.
  std::uint64_t memory_bytes = 0;
  std::vector<std::string> arguments = {};  // After the bytes of memory.
  std::string_view doing;                   // For messages.
};

// Whether a process may continue, and how often that is checked: as in CompileJob.
struct Orders {
  std::function<bool(std::chrono::nanoseconds used)> may_go_on = {};
  std::chrono::nanoseconds asks_every{};
};

// Processor time of a process that has not been reaped; it may have exited.
std::chrono::nanoseconds processor_time_of(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

std::chrono::nanoseconds duration_of(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

Result<Process> start(const Job& job) {
  const std::filesystem::path path = job.output.empty() ? "/dev/null" : job.output;
  const Descriptor output(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (output.value() < 0) return fail_errno(fmt::format("create {}", path.string()));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno("create a pipe");
  Descriptor messages(ends[0]);
  const Descriptor messages_in(ends[1]);

  // The process inherits no other descriptor: every descriptor of the host is closed on exec.
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, job.input.descriptor(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.value(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, messages_in.value(), STDERR_FILENO);
  std::vector<std::string> words = job.arguments;
  words.insert(words.begin(), {job.program.string(), std::to_string(job.memory_bytes)});
  std::vector<char*> arguments;
  arguments.reserve(words.size());
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // No environment: it may contain the host's secrets.
  std::array<char*, 1> environment = {nullptr};
  Process process{.messages = std::move(messages)};
  // The host may block signals that must terminate this process.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int code = ::posix_spawn(&process.pid, job.program.c_str(), &actions, &attributes,
                                 arguments.data(), environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return fail_errno(fmt::format("start {}", job.program.string()), code);
  return process;
}

std::string read_messages(int descriptor) {
  std::string text(kMessageBytesMax, '\0');
  const ssize_t count = ::read(descriptor, text.data(), text.size());
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  while (text.ends_with('\n'))
    text.pop_back();
  return text;
}

Result<> out_of_memory(std::uint64_t allowed_bytes) {
  return fail(ErrorKind::LimitExceeded,
              fmt::format("{}: {}. Give the host more memory, or --guest-memory a larger value",
                          kOutOfMemory, budget::size_text(allowed_bytes)));
}

Result<> outcome_of(int status, std::string message, std::uint64_t memory_bytes,
                    std::string_view doing) {
  if (WIFEXITED(status)) {
    switch (WEXITSTATUS(status)) {
      case kExitOk:
        return {};
      case kExitInvalidModule:
        return fail(ErrorKind::InvalidInput, std::move(message));
      case kExitLimit:
        if (message == kOutOfMemory) return out_of_memory(memory_bytes);
        return fail(ErrorKind::LimitExceeded, std::move(message));
      default:
        return fail(ErrorKind::Unavailable, "hangar-compile: " + message);
    }
  }
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGXCPU) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("{} takes more processor time than is allowed", doing));
  }
  // When memory runs out, Rust code aborts, C++ code throws, and threads cannot get stacks.
  constexpr std::array<std::string_view, 3> kSigns = {"memory allocation", "bad_alloc",
                                                      "ThreadPoolBuildError"};
  if (std::ranges::any_of(kSigns, [&](std::string_view sign) { return message.contains(sign); })) {
    return out_of_memory(memory_bytes);
  }
  if (signal == SIGKILL) {
    return fail(ErrorKind::Unavailable,
                "hangar-compile was killed, most likely because the host's container is short of "
                "memory");
  }
  return fail(ErrorKind::Unavailable,
              fmt::format("hangar-compile was killed by signal {}: {}", signal, message));
}

io::Task<Result<>> run(io::Loop& loop, io::Workers& workers, budget::Consumer whose, Job job,
                       std::chrono::nanoseconds deadline, Orders orders, std::stop_token stop) {
  const std::uint64_t memory_bytes = job.memory_bytes;
  const std::string_view doing = job.doing;
  // Starting a process from a large one takes milliseconds.
  Result<Process> started =
      co_await workers.run(std::move(whose), [job = std::move(job)] { return start(job); });
  if (!started) co_return std::unexpected(std::move(started).error());
  const pid_t pid = started->pid;
  // The child is ours and not yet reaped, so its pid cannot belong to another process.
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));

  const io::OneShot<bool> ended(loop);
  bool is_late = false;
  bool has_to_give_way = false;
  if (handle.value() < 0) {
    const int code = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    co_return fail_errno("watch hangar-compile", code);
  }
  {
    const auto watch =
        loop.watch(handle.value(), io::Loop::Direction::Read, [ended] { ended.set(true); });
    const io::Loop::Timer timer = loop.after(deadline, [&is_late, pid] {
      is_late = true;
      ::kill(pid, SIGKILL);
    });
    const std::stop_callback on_stop(stop, [pid] { ::kill(pid, SIGKILL); });
    std::function<bool()> may_go_on;
    if (orders.may_go_on) may_go_on = [&] { return orders.may_go_on(processor_time_of(pid)); };
    const internal::Overseer overseer(loop, orders.asks_every, std::move(may_go_on),
                                      [pid] { ::kill(pid, SIGKILL); });
    co_await ended.wait();
    has_to_give_way = overseer.has_ended_it();
  }
  int status = 0;
  rusage usage{};
  while (::wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  const std::chrono::nanoseconds used = duration_of(usage.ru_utime) + duration_of(usage.ru_stime);
  if (orders.may_go_on) (void)orders.may_go_on(used);
  std::string message = read_messages(started->messages.value());
  const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (is_killed && is_late) {
    co_return fail(ErrorKind::LimitExceeded, fmt::format("{} exceeded the time limit of {}", doing,
                                                         to_go_duration(deadline)));
  }
  if (is_killed && has_to_give_way) {
    co_return fail(ErrorKind::Unavailable,
                   fmt::format("{} was stopped after {} s of processor time: modules of other "
                               "namespaces are waiting. hangar retries",
                               doing, std::chrono::round<std::chrono::seconds>(used).count()));
  }
  if (is_killed && stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopped");
  co_return outcome_of(status, std::move(message), memory_bytes, doing);
}

}  // namespace

io::Task<Result<>> compile(io::Loop& loop, io::Workers& workers, budget::Consumer whose,
                           CompileJob job, std::stop_token stop) {
  std::vector<std::string> arguments = {std::to_string(job.output_bytes)};
  if (job.is_for_any_machine) arguments.emplace_back(kAnyProcessorArgument);
  return run(loop, workers, std::move(whose),
             {.program = std::move(job.program),
              .input = std::move(job.input),
              .output = std::move(job.output),
              .memory_bytes = job.memory_bytes,
              .arguments = std::move(arguments),
              .doing = "compiling"},
             job.deadline, {.may_go_on = std::move(job.may_go_on), .asks_every = job.asks_every},
             std::move(stop));
}

io::Task<Result<>> verify(io::Loop& loop, io::Workers& workers, budget::Consumer whose,
                          VerifyJob job, std::stop_token stop) {
  std::vector<std::string> arguments = std::move(job.keys);
  arguments.insert(arguments.begin(), std::string(kVerifyArgument));
  return run(loop, workers, std::move(whose),
             {.program = std::move(job.program),
              .input = std::move(job.input),
              .memory_bytes = limits::kVerifyMemoryBytes,
              .arguments = std::move(arguments),
              .doing = "verifying its signature"},
             job.deadline, {}, std::move(stop));
}

}  // namespace hangar::wasm
