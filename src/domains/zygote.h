// The host's side of the process that forks guest processes.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "guest_protocol/zygote_messages.h"
#include "io/loop.h"

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hangar::domains {

// A running hangar-guest: with an empty environment, one socket and no other descriptor, and in its
// own process group, so that a terminal's interrupt does not reach it. It is killed together with
// this object, and when the thread that started it exits. It is started before the host reads a
// credential, so that it cannot contain one.
class ZygoteProcess {
 public:
  // Unavailable says what is wrong with `program`.
  [[nodiscard]] static Result<ZygoteProcess> start(const std::filesystem::path& program);

  ZygoteProcess(ZygoteProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), socket_(std::exchange(other.socket_, -1)) {}
  ZygoteProcess(const ZygoteProcess&) = delete;
  ZygoteProcess& operator=(const ZygoteProcess&) = delete;
  ZygoteProcess& operator=(ZygoteProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(socket_, other.socket_);
    return *this;
  }
  ~ZygoteProcess();

  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  ZygoteProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  pid_t pid_;
  int socket_;
};

// Loop thread.
class Zygote {
 public:
  struct Events {
    std::function<void(const guest_protocol::Standing&)> on_standing;
    // A process has exited. `how` is for people: "killed by signal 11 (Segmentation fault)".
    std::function<void(std::uint64_t process, Error how)> on_ended;
    // What a process takes, with its guests; now and then.
    std::function<void(std::uint64_t process, std::uint64_t bytes)> on_memory;
    // The zygote and all processes have exited; on_ended is not called for each process.
    std::function<void(Error how)> on_gone;
  };

  // `running` may be std::nullopt: then the zygote is started on demand.
  Zygote(io::Loop& loop, std::filesystem::path program, std::optional<ZygoteProcess> running,
         Events events);
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;
  ~Zygote();

  // Takes ownership of `socket`, which becomes the process's. Restarts the zygote if it has exited,
  // at most once a second. Unavailable; then no process is created.
  [[nodiscard]] Result<> fork(const guest_protocol::ForkProcess& order, int socket, Instant now);
  // Kills the process. on_ended follows, or on_gone if the zygote does not do it.
  void end(std::uint64_t process);

  // No callback is called any more.
  void stop();

  [[nodiscard]] std::optional<pid_t> pid() const;

 private:
  [[nodiscard]] Result<> ensure_running(Instant now);
  void watch();
  void receive();
  void give_up(Error how);
  [[nodiscard]] Result<> send(const guest_protocol::ToZygote& message, int descriptor);

  io::Loop& loop_;
  const std::filesystem::path program_;
  const Events events_;
  std::optional<ZygoteProcess> running_;
  std::optional<Instant> started_;
  std::unique_ptr<io::Loop::Watch> watch_;
  std::map<std::uint64_t, io::Loop::Timer> ending_;  // When each process must have exited.
};

}  // namespace hangar::domains
