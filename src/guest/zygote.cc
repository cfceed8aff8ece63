#include "guest/zygote.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "guest/process_memory.h"
#include "guest_protocol/zygote_messages.h"
#include "io/local_message.h"
#include "io/loop.h"
#include "sandbox/landlock.h"
#include "sandbox/system_calls.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::guest {

namespace {

using guest_protocol::EndProcess;
using guest_protocol::ForkProcess;

// How often the zygote measures the memory of its processes. No limit of the kernel fits: the
// engine reserves a hundred times the address space that guests use. In this time a process under
// an attacker's control can allocate some 100 MiB.
constexpr std::chrono::milliseconds kLookEvery{50};

// The zygote tells the host of changes of this size at once, and of all others after this time.
constexpr std::uint64_t kToldStepBytes = limits::kMiB;
constexpr std::chrono::seconds kToldEvery{1};

// Memory that a process may have in addition to that of its guests: used stacks, the heaps, and
// messages in transit.
constexpr std::uint64_t kOwnBytesMax = 256 * limits::kMiB;

struct Child {
  std::uint64_t process = 0;
  pid_t pid = -1;
  int handle = -1;  // A pidfd: readable when the process has exited.
  int status = -1;  // Its file in /proc, by open_status().
  ProcessClock clock = {};
  std::uint64_t memory_bytes_max = 0;
  std::uint64_t bytes = 0;           // Its memory when it was looked at last.
  std::uint64_t told_bytes = 0;      // Its memory, as the host was told last.
  Instant told;                      // When.
  std::uint64_t ended_at_bytes = 0;  // Its memory, if the zygote killed it for exceeding its bound.
};

// A packet from the host, and its descriptor if it has one.
struct Packet {
  std::string bytes;
  std::vector<int> descriptors;
};

class Zygote {
 public:
  Zygote(int socket, const RunProcess& run_process) : socket_(socket), run_process_(run_process) {}

  void run() {
    tell(guest_protocol::Standing{
        .landlock_version = static_cast<std::uint32_t>(sandbox::landlock_version()),
        .has_system_call_filter = sandbox::has_system_call_filters()});
    while (wait()) {
    }
  }

 private:
  // False when the host has closed the socket.
  bool wait() {
    std::vector<pollfd> watched = {{.fd = socket_, .events = POLLIN, .revents = 0}};
    for (const Child& child : children_)
      watched.push_back({.fd = child.handle, .events = POLLIN, .revents = 0});
    if (::poll(watched.data(), watched.size(), until_look()) < 0) return errno == EINTR;
    bury();
    // An order to fork does not wait for a look at all processes.
    if (const Instant now = io::Loop::now(); now >= look_at_) look_at_memory(now);
    if (watched.front().revents == 0) return true;
    const Packet packet = receive();
    if (packet.bytes.empty()) return false;
    return obey(packet);
  }

  // In milliseconds, for poll().
  [[nodiscard]] int until_look() const {
    if (children_.empty()) return -1;
    const Duration rest = look_at_ - io::Loop::now();
    return static_cast<int>(
        std::chrono::ceil<std::chrono::milliseconds>(std::max(rest, Duration::zero())).count());
  }

  void bury() {
    std::erase_if(children_, [this](const Child& child) {
      int status = 0;
      if (::waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
      close_files(child);
      tell(guest_protocol::ProcessEnded{
          .process = child.process, .status = status, .memory_bytes = child.ended_at_bytes});
      return true;
    });
  }

  // Ends processes that are too large, and tells the host of the others.
  void look_at_memory(Instant now) {
    look_at_ = now + kLookEvery;
    for (Child& child : children_) {
      if (child.ended_at_bytes > 0) continue;
      // The clock first: what the process does after it is seen at the next look. To read the file
      // takes the kernel ten times as long. The kernel alone can add memory by merging pages into
      // huge ones.
      if (!child.clock.stood_still() || now >= child.told + kToldEvery) {
        child.bytes = memory_of(child.status);
      }
      if (child.bytes <= child.memory_bytes_max) {
        tell_of_memory(child, child.bytes, now);
        continue;
      }
      child.ended_at_bytes = child.bytes;
      ::kill(child.pid, SIGKILL);
    }
  }

  [[nodiscard]] Packet receive() const {
    Packet packet{.bytes = std::string(guest_protocol::kZygotePacketBytesMax, '\0')};
    const ssize_t size =
        io::receive_local(socket_, packet.bytes, packet.descriptors, io::Waiting::Yes);
    packet.bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return packet;
  }

  bool obey(const Packet& packet) {
    const auto order = guest_protocol::decode_to_zygote(packet.bytes);
    if (!order) return false;
    if (const auto* const end = std::get_if<EndProcess>(&*order)) {
      const auto child = std::ranges::find(children_, end->process, &Child::process);
      if (child != children_.end())
        ::kill(child->pid, SIGKILL);  // Our child and not yet reaped:
                                      // the pid is still its own.
      return true;
    }
    const auto& fork_order = std::get<ForkProcess>(*order);
    if (packet.descriptors.empty()) {
      // The socket is missing: the kernel drops a descriptor when the process has no free number
      // for it.
      tell(guest_protocol::ForkFailed{.process = fork_order.process, .error_number = EMFILE});
      return true;
    }
    fork_process(fork_order, packet.descriptors.front());
    for (const int descriptor : packet.descriptors)
      ::close(descriptor);
    return true;
  }

  void fork_process(const ForkProcess& order, int descriptor) {
    const pid_t zygote = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      // The child keeps neither the zygote's descriptors nor those of its siblings.
      for (const Child& other : children_)
        close_files(other);
      ::dup2(descriptor, socket_);
      ::close(descriptor);
      // Closes any that were overlooked; Linux 5.9.
      ::syscall(SYS_close_range, STDERR_FILENO + 1, std::numeric_limits<unsigned>::max(), 0);
      ::_exit(run_process_(order, socket_, zygote));
    }
    const int fork_error = errno;
    Child child{.process = order.process,
                .pid = pid,
                .memory_bytes_max = order.memory_bytes_max + kOwnBytesMax};
    if (pid > 0) child.handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (child.handle >= 0) child.status = open_status(pid);
    if (child.status >= 0) child.clock = ProcessClock(pid);
    if (child.status >= 0) {
      children_.push_back(child);
      return;
    }
    const int error_number = pid < 0 ? fork_error : errno;
    if (child.handle >= 0) ::close(child.handle);
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    tell(guest_protocol::ForkFailed{.process = order.process, .error_number = error_number});
  }

  static void close_files(const Child& child) {
    ::close(child.handle);
    ::close(child.status);
  }

  void tell_of_memory(Child& child, std::uint64_t bytes, Instant now) const {
    const auto [less, more] = std::minmax(bytes, child.told_bytes);
    if (more - less < kToldStepBytes && now < child.told + kToldEvery) return;
    const std::string packet = guest_protocol::encode(
        guest_protocol::ProcessMemory{.process = child.process, .memory_bytes = bytes});
    // A host that does not read must not hold up the zygote: the next look tries again.
    if (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
    child.told_bytes = bytes;
    child.told = now;
  }

  void tell(const guest_protocol::FromZygote& message) const {
    const std::string packet = guest_protocol::encode(message);
    // Sending fails when the host has exited; the next poll of the socket notices that.
    while (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
  }

  const int socket_;
  const RunProcess& run_process_;
  std::vector<Child> children_;
  Instant look_at_;  // When the next look at their memory is due.
};

}  // namespace

void run_zygote(int socket, const RunProcess& run_process) {
  Zygote(socket, run_process).run();
}

}  // namespace hangar::guest
