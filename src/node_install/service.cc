#include "node_install/service.h"

#include "base/result.h"
#include "node_install/cri_probe.h"
#include "node_install/distribution.h"
#include "node_install/files.h"
#include "node_install/limits.h"
#include "node_install/outcome.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::node_install {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::array<std::string_view, 5> kUnitDirectories = {
    "/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system", "/lib/systemd/system"};
constexpr std::string_view kEnabledUnits = "/etc/systemd/system/multi-user.target.wants";
constexpr std::array<std::string_view, 4> kSystemctl = {"/usr/bin/systemctl", "/bin/systemctl",
                                                        "/usr/local/bin/systemctl",
                                                        "/run/current-system/sw/bin/systemctl"};

// Enters all namespaces in which a service manager and its tools see the node, except for
// processes: the container shares those already.
bool enter_process_1() {
  // Opened first: in the other mount namespace /proc differs.
  std::vector<Descriptor> namespaces;
  for (const char* kind : {"cgroup", "ipc", "uts", "net", "mnt"}) {
    namespaces.emplace_back(
        ::open(fmt::format("/proc/1/ns/{}", kind).c_str(), O_RDONLY | O_CLOEXEC));
    if (!namespaces.back().is_open()) return false;
  }
  return std::ranges::all_of(namespaces,
                             [](const Descriptor& ns) { return ::setns(ns.value(), 0) == 0; }) &&
         ::chdir("/") == 0;
}

// The output as one line, for people, without characters that could control a terminal.
std::string tidy(std::string_view output) {
  std::string line;
  for (const char c : output) {
    const bool is_space = static_cast<unsigned char>(c) <= 0x20 || c == 0x7f;
    if (!is_space) line += c;
    if (is_space && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (line.ends_with(' '))
    line.pop_back();
  return line;
}

// Kills the child and all processes that it has started: it leads a process group.
void end(pid_t child) {
  ::kill(-child, SIGKILL);
}

struct Watched {
  std::string output;
  bool is_late = false;
};

// Reads the child's output until the child exits or the deadline passes.
Watched watch(int pipe, pid_t child, steady_clock::time_point deadline) {
  Watched watched;
  while (true) {
    // A service that the child has started may hold the pipe open, so the exit of the child
    // is enough.
    siginfo_t info{};
    const bool has_ended =
        ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child;
    const bool is_late = steady_clock::now() >= deadline;
    pollfd ready{.fd = pipe, .events = POLLIN, .revents = 0};
    constexpr int kLookMs = 100;
    const int count = ::poll(&ready, 1, has_ended ? 0 : kLookMs);
    if (count > 0) {
      std::array<char, 1024> piece{};
      const ssize_t size = ::read(pipe, piece.data(), piece.size());
      if (size > 0) {
        watched.output.append(piece.data(), static_cast<std::size_t>(size));
        if (watched.output.size() > limits::kOutputBytesMax)
          watched.output.erase(0, watched.output.size() - limits::kOutputBytesMax);
        if (!is_late) continue;
      }
      // All writers have closed the pipe, but the child may still run.
      if (size == 0 && !has_ended) std::this_thread::sleep_for(milliseconds(kLookMs));
    }
    if (has_ended) return watched;
    if (is_late) {
      watched.is_late = true;
      return watched;
    }
  }
}

}  // namespace

Result<> run_command(const std::vector<std::string>& command, steady_clock::time_point deadline,
                     const std::function<bool()>& before_exec) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(ErrorKind::Unavailable, "make a pipe for a command's output");
  const Descriptor reading(ends[0]);
  std::optional<Descriptor> writing(std::in_place, ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return fail(ErrorKind::Unavailable, "start a process");
  if (child == 0) {
    ::setpgid(0, 0);
    ::dup2(writing->value(), STDOUT_FILENO);
    ::dup2(writing->value(), STDERR_FILENO);
    if (!before_exec()) {
      fmt::print(stderr, "enter the namespaces of process 1: {}\n",
                 std::generic_category().message(errno));
      std::fflush(stderr);
      ::_exit(126);
    }
    std::vector<char*> arguments;
    std::vector<std::string> copies = command;
    arguments.reserve(copies.size());
    for (std::string& argument : copies)
      arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    std::string path =
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin";
    std::array<char*, 2> environment = {path.data(), nullptr};
    ::execve(arguments.front(), arguments.data(), environment.data());
    fmt::print(stderr, "{}: {}\n", command.front(), std::generic_category().message(errno));
    std::fflush(stderr);
    ::_exit(127);
  }
  // As in the child: the group exists from here on, whichever of the two processes runs first.
  ::setpgid(child, child);
  writing.reset();
  const Watched watched = watch(reading.value(), child, deadline);
  if (watched.is_late) end(child);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (watched.is_late) {
    return fail(ErrorKind::Unavailable, fmt::format("{} did not exit in time: {}",
                                                    fmt::join(command, " "), tidy(watched.output)));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(ErrorKind::Unavailable,
              fmt::format("{} failed with {} {}: {}", fmt::join(command, " "),
                          WIFEXITED(status) ? "status" : "signal",
                          WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
                          tidy(watched.output)));
}

bool NodeService::is_process_1_root() const {
  struct stat ours{};
  struct stat theirs{};
  return ::fstat(files_.root(), &ours) == 0 && ::stat("/proc/1/root/.", &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

std::string NodeService::find_unit(const Node& node) const {
  const auto is_enabled = [&](const std::string& service) {
    return files_.exists(fmt::format("{}/{}.service", kEnabledUnits, service));
  };
  const auto is_there = [&](const std::string& service) {
    return std::ranges::any_of(kUnitDirectories, [&](std::string_view directory) {
      return files_.exists(fmt::format("{}/{}.service", directory, service));
    });
  };
  auto found = std::ranges::find_if(node.services, is_enabled);
  if (found == node.services.end()) found = std::ranges::find_if(node.services, is_there);
  if (found != node.services.end()) return *found;
  // k3s can be installed under a custom name: k3s-NAME.
  const std::string& first = node.services.front();
  const std::string prefix = first.substr(0, first.find('-')) + "-";
  for (const std::string& name : files_.list(kUnitDirectories.front())) {
    constexpr std::string_view kSuffix = ".service";
    if (node.distribution == Distribution::K3s && name.starts_with(prefix) &&
        name.ends_with(kSuffix)) {
      return name.substr(0, name.size() - kSuffix.size());
    }
  }
  return first;
}

Result<NodeService::Command> NodeService::command_for(const Node& node) const {
  if (!options_.restart_command.empty()) return Command{"/bin/sh", "-c", options_.restart_command};
  const auto systemctl = std::ranges::find_if(
      kSystemctl, [&](std::string_view program) { return files_.exists(program); });
  if (systemctl != kSystemctl.end())
    return Command{std::string(*systemctl), "restart", find_unit(node)};
  for (const std::string& service : node.services) {
    const std::string script = "/etc/init.d/" + service;
    if (files_.exists(script)) return Command{script, "restart"};
  }
  return refuse(ErrorKind::InvalidInput, reason::kUsage,
                fmt::format("nothing known restarts {} on this node (neither systemctl nor "
                            "/etc/init.d/{}): give --restart-command, or --no-restart",
                            node.services.front(), node.services.front()));
}

Result<> NodeService::check(const Node& node) {
  HANGAR_TRY(command_for(node));
  if (!options_.restart_command.empty() || is_process_1_root()) return {};
  return refuse(
      ErrorKind::InvalidInput, reason::kUsage,
      fmt::format("{} is not the root of process 1, so containerd cannot be restarted from "
                  "here: share the node's process namespace (hostPID), or give "
                  "--restart-command, or --no-restart",
                  options_.root));
}

Result<> NodeService::restart(const Node& node) {
  const auto deadline = steady_clock::now() + options_.at_most;
  const Command command = HANGAR_TRY(command_for(node));
  const bool is_local = options_.root == "/" || !options_.restart_command.empty();
  HANGAR_TRY(run_command(command, deadline, [is_local] { return is_local || enter_process_1(); }));
  return wait_until_back(node, deadline);
}

Result<> NodeService::wait_until_back(const Node& node, steady_clock::time_point deadline) const {
  while (true) {
    Result<Files::Reached> socket = files_.reach(node.socket);
    Result<> answer = socket ? probe_cri(socket->path, limits::kProbeMax)
                             : Result<>(std::unexpected(std::move(socket).error()));
    if (answer) return {};
    if (steady_clock::now() >= deadline) {
      return fail(ErrorKind::Unavailable,
                  fmt::format("containerd is not back after {} s: {}", options_.at_most.count(),
                              answer.error().message()));
    }
    std::this_thread::sleep_for(limits::kProbePause);
  }
}

}  // namespace hangar::node_install
