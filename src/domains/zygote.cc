#include "domains/zygote.h"

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "guest_protocol/zygote_messages.h"
#include "io/local_message.h"
#include "io/loop.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

namespace hangar::domains {

namespace {

namespace protocol = guest_protocol;

// The least time between two starts: a zygote that exits at once must not keep the host busy.
constexpr std::chrono::seconds kBetweenStarts{1};
// A killed process exits at once; if it does not, the zygote has failed to kill it.
constexpr std::chrono::seconds kEndMax{10};

std::unexpected<Error> fail_errno(std::string_view doing, int code = errno) {
  return fail(ErrorKind::Unavailable,
              fmt::format("{}: {}", doing, std::generic_category().message(code)));
}

// The kind of the error names the cause: a guest that crashed its process, or a problem of
// the host.
Error how_ended(int status, std::uint64_t memory_bytes) {
  if (memory_bytes > 0) {
    return {ErrorKind::LimitExceeded,
            fmt::format("killed for using {} of memory, more than its guests may have",
                        budget::size_text(memory_bytes))};
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const char* const name = ::sigdescr_np(signal);
    return {ErrorKind::GuestFault,
            fmt::format("killed by signal {} ({})", signal, name != nullptr ? name : "unknown")};
  }
  const int code = WEXITSTATUS(status);
  if (code == protocol::kExitWithoutWalls) {
    return {ErrorKind::Unavailable, "could not be closed off from the rest of the system"};
  }
  if (code == protocol::kExitOtherProtocol) {
    return {ErrorKind::Unavailable, "is of another version than this host"};
  }
  return {ErrorKind::GuestFault, fmt::format("exited with status {}", code)};
}

}  // namespace

Result<ZygoteProcess> ZygoteProcess::start(const std::filesystem::path& program) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail_errno("make a socket for hangar-guest");
  }
  ZygoteProcess process(-1, ends[0]);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], protocol::kSocket);
  // A guest process must not write to the host's log.
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    ::posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_WRONLY, 0);
  }
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::string name = program.string();
  std::array<char*, 2> arguments = {name.data(), nullptr};
  // The host's environment may hold secrets.
  std::array<char*, 1> environment = {nullptr};
  const int code = ::posix_spawn(&process.pid_, name.c_str(), &actions, &attributes,
                                 arguments.data(), environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (code != 0) {
    process.pid_ = -1;
    return fail_errno(fmt::format("start {}", name), code);
  }
  return process;
}

ZygoteProcess::~ZygoteProcess() {
  if (socket_ >= 0) ::close(socket_);
  if (pid_ <= 0) return;
  // Its children end with it. It is our child and not yet waited for, so no other process has
  // its id.
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Zygote::Zygote(io::Loop& loop, std::filesystem::path program, std::optional<ZygoteProcess> running,
               Events events)
    : loop_(loop), program_(std::move(program)), events_(std::move(events)) {
  if (!running) return;
  running_.emplace(*std::move(running));
  watch();
}

Zygote::~Zygote() = default;

Result<> Zygote::fork(const protocol::ForkProcess& order, int socket, Instant now) {
  Result<> sent = ensure_running(now);
  if (sent) sent = send(order, socket);
  ::close(socket);
  return sent;
}

void Zygote::end(std::uint64_t process) {
  const auto [at, is_new] = ending_.try_emplace(process);
  if (!is_new || !running_) return;
  at->second = loop_.after(kEndMax, [this, process] {
    // Reads before it judges, because the report may wait in the socket: a command's loop does not
    // run while it waits for its user.
    receive();
    if (!ending_.contains(process)) return;
    give_up(Error(ErrorKind::Unavailable, "hangar-guest does not end its processes"));
  });
  // If the order cannot be sent, the timer handles it.
  static_cast<void>(send(protocol::EndProcess{.process = process}, -1));
}

void Zygote::stop() {
  watch_.reset();
  ending_.clear();
  running_.reset();
}

std::optional<pid_t> Zygote::pid() const {
  return running_ ? std::optional(running_->pid()) : std::nullopt;
}

Result<> Zygote::ensure_running(Instant now) {
  if (running_) return {};
  if (started_ && now < *started_ + kBetweenStarts) {
    return fail(ErrorKind::Unavailable, "hangar-guest has just exited: retrying in a second");
  }
  started_ = now;
  running_.emplace(HANGAR_TRY(ZygoteProcess::start(program_)));
  watch();
  return {};
}

void Zygote::watch() {
  watch_ = loop_.watch(running_->socket(), io::Loop::Direction::Read, [this] { receive(); });
}

void Zygote::receive() {
  while (running_) {
    std::array<char, protocol::kZygotePacketBytesMax> bytes{};
    // recv() without room for descriptors: none is accepted.
    const ssize_t size = ::recv(running_->socket(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return give_up(Error(ErrorKind::Unavailable, "hangar-guest has exited"));
    const auto message =
        protocol::decode_from_zygote({bytes.data(), static_cast<std::size_t>(size)});
    if (!message) {
      return give_up(Error(ErrorKind::Unavailable, "hangar-guest is of another version"));
    }
    if (const auto* const standing = std::get_if<protocol::Standing>(&*message)) {
      events_.on_standing(*standing);
    } else if (const auto* const ended = std::get_if<protocol::ProcessEnded>(&*message)) {
      ending_.erase(ended->process);
      events_.on_ended(ended->process, how_ended(ended->status, ended->memory_bytes));
    } else if (const auto* const memory = std::get_if<protocol::ProcessMemory>(&*message)) {
      events_.on_memory(memory->process, memory->memory_bytes);
    } else {
      const auto& failed = std::get<protocol::ForkFailed>(*message);
      ending_.erase(failed.process);
      events_.on_ended(failed.process,
                       Error(ErrorKind::Unavailable,
                             fmt::format("could not be forked: {}",
                                         std::generic_category().message(failed.error_number))));
    }
  }
}

void Zygote::give_up(Error how) {
  watch_.reset();
  ending_.clear();
  running_.reset();
  events_.on_gone(std::move(how));
}

Result<> Zygote::send(const protocol::ToZygote& message, int descriptor) {
  if (io::send_local(running_->socket(), protocol::encode(message), descriptor) < 0) {
    return fail_errno("tell hangar-guest");
  }
  return {};
}

}  // namespace hangar::domains
