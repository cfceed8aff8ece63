#include "wasm/wasi/preview1.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/host_task.h"
#include "wasm/wasi/errno.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::wasm::wasi {

namespace {

using Status = Result<std::uint32_t>;  // An Errno, unless the run is over.
using Descriptor = Command::Descriptor;

// Of one readv or writev; more are left for the next call, which POSIX allows.
constexpr std::uint32_t kVectorsMax = 1024;
// Of one poll_oneoff: a clock, and each descriptor twice, would be seven.
constexpr std::uint32_t kSubscriptionsMax = 256;
// One random_get. Filling it cannot be interrupted: this much takes 50 ms.
constexpr std::uint32_t kRandomBytesMax = 16 * limits::kMiB;

// Layouts of preview 1, in bytes.
constexpr std::uint32_t kVectorBytes = 8;
constexpr std::uint32_t kSubscriptionBytes = 48;
constexpr std::uint32_t kEventBytes = 32;
constexpr std::uint32_t kFdstatBytes = 24;
constexpr std::uint32_t kFilestatBytes = 64;

constexpr std::uint64_t kRightRead = 1U << 1;
constexpr std::uint64_t kRightWrite = 1U << 6;
constexpr std::uint64_t kRightPoll = 1U << 27;

Command& command_of(HostCall call) {
  return call.state<Command>();
}

Errno status(const Result<>& result) {
  return result ? kSuccess : kFault;
}

// Arguments and environment have one form: a list of pointers and the strings behind them.
Status write_strings(HostCall call, const std::vector<std::string>& strings, std::uint32_t pointers,
                     std::uint32_t bytes) {
  const GuestMemory memory = HANGAR_TRY(call.memory());
  std::uint32_t at = bytes;
  for (const std::string& text : strings) {
    const std::string_view with_null(text.c_str(), text.size() + 1);
    if (!memory.write_u32(pointers, at) || !memory.write(at, with_null)) return kFault;
    at += static_cast<std::uint32_t>(with_null.size());
    pointers += 4;
  }
  return kSuccess;
}

Status write_string_sizes(HostCall call, const std::vector<std::string>& strings,
                          std::uint32_t count, std::uint32_t bytes) {
  std::size_t total = 0;
  for (const std::string& text : strings)
    total += text.size() + 1;
  const GuestMemory memory = HANGAR_TRY(call.memory());
  if (!memory.write_u32(count, static_cast<std::uint32_t>(strings.size()))) return kFault;
  return status(memory.write_u32(bytes, static_cast<std::uint32_t>(total)));
}

Status args_get(HostCall call, std::uint32_t pointers, std::uint32_t bytes) {
  return write_strings(call, command_of(call).arguments, pointers, bytes);
}

Status args_sizes_get(HostCall call, std::uint32_t count, std::uint32_t bytes) {
  return write_string_sizes(call, command_of(call).arguments, count, bytes);
}

Status environ_get(HostCall call, std::uint32_t pointers, std::uint32_t bytes) {
  return write_strings(call, command_of(call).environment, pointers, bytes);
}

Status environ_sizes_get(HostCall call, std::uint32_t count, std::uint32_t bytes) {
  return write_string_sizes(call, command_of(call).environment, count, bytes);
}

enum Clock : std::uint32_t { kRealtime = 0, kMonotonic = 1 };

// Nothing for the clocks of processor time, which guests are not told.
std::optional<std::uint64_t> read_clock(std::uint32_t clock) {
  const auto nanoseconds = [](auto time) {
    return static_cast<std::uint64_t>(Duration(time.time_since_epoch()).count());
  };
  switch (clock) {
    case kRealtime:
      return nanoseconds(io::Loop::wall_now());
    case kMonotonic:
      return nanoseconds(io::Loop::now());
    default:
      return std::nullopt;
  }
}

Status clock_time_get(HostCall call, std::uint32_t clock, std::uint64_t /*precision*/,
                      std::uint32_t time) {
  const std::optional<std::uint64_t> now = read_clock(clock);
  if (!now) return kInvalid;
  return status(HANGAR_TRY(call.memory()).write_u64(time, *now));
}

Status clock_res_get(HostCall call, std::uint32_t clock, std::uint32_t resolution) {
  if (!read_clock(clock)) return kInvalid;
  return status(HANGAR_TRY(call.memory()).write_u64(resolution, 1));
}

Status random_get(HostCall call, std::uint32_t address, std::uint32_t size) {
  if (size > kRandomBytesMax) return kInvalid;
  auto bytes = HANGAR_TRY(call.memory()).range(address, size);
  if (!bytes) return kFault;
  std::span<std::byte> rest = *bytes;
  while (!rest.empty()) {
    const ssize_t count = ::getrandom(rest.data(), rest.size(), 0);
    if (count < 0 && errno != EINTR) {
      return fail(ErrorKind::Unavailable, "the system has no randomness");
    }
    if (count > 0) rest = rest.subspan(static_cast<std::size_t>(count));
  }
  return kSuccess;
}

Result<> proc_exit(HostCall call, std::uint32_t code) {
  command_of(call).exit_code = code;
  return call.leave();
}

Status sched_yield(HostCall /*call*/) {
  return kSuccess;
}

Status proc_raise(HostCall /*call*/, std::uint32_t /*signal*/) {
  return kNotImplemented;
}

// One element of a readv or writev.
struct Vector {
  std::uint32_t address = 0;
  std::uint32_t size = 0;
};

// EFAULT as nothing.
std::optional<std::vector<Vector>> read_vectors(const GuestMemory& memory, std::uint32_t address,
                                                std::uint32_t count) {
  count = std::min(count, kVectorsMax);
  const auto bytes = memory.range(address, std::uint64_t{count} * kVectorBytes);
  if (!bytes) return std::nullopt;
  std::vector<Vector> vectors(count);
  static_assert(sizeof(Vector) == kVectorBytes);
  if (count > 0) std::memcpy(vectors.data(), bytes->data(), bytes->size());
  for (const Vector& vector : vectors) {
    if (!memory.has_range(vector.address, vector.size)) return std::nullopt;
  }
  return vectors;
}

Status fd_read(HostCall call, std::uint32_t number, std::uint32_t vectors_at, std::uint32_t count,
               std::uint32_t size_at) {
  Command& command = command_of(call);
  if (command.descriptor(number) != Descriptor::Stdin) return kBadDescriptor;
  const GuestMemory memory = HANGAR_TRY(call.memory());
  const auto vectors = read_vectors(memory, vectors_at, count);
  if (!vectors || !memory.has_range(size_at, 4)) return kFault;
  std::uint32_t total = 0;
  for (const Vector& vector : *vectors) {
    const std::string_view bytes = command.take_stdin(vector.size);
    HANGAR_TRY(memory.write(vector.address, bytes));
    total += static_cast<std::uint32_t>(bytes.size());
    if (bytes.size() < vector.size) break;
  }
  return status(memory.write_u32(size_at, total));
}

Result<> keep_output(Command& command, Descriptor descriptor, std::string_view bytes) {
  if (descriptor == Descriptor::Stdout) {
    if (bytes.size() > command.stdout_bytes_max - command.stdout_bytes.size()) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("stdout is larger than {} bytes", command.stdout_bytes_max));
    }
    command.stdout_bytes += bytes;
    return {};
  }
  const std::uint64_t left = command.stderr_bytes_max - command.stderr_bytes.size();
  command.stderr_bytes += bytes.substr(0, left);
  command.stderr_dropped_bytes += bytes.size() - std::min<std::uint64_t>(bytes.size(), left);
  return {};
}

Status fd_write(HostCall call, std::uint32_t number, std::uint32_t vectors_at, std::uint32_t count,
                std::uint32_t size_at) {
  Command& command = command_of(call);
  const Descriptor descriptor = command.descriptor(number);
  if (descriptor != Descriptor::Stdout && descriptor != Descriptor::Stderr) return kBadDescriptor;
  const GuestMemory memory = HANGAR_TRY(call.memory());
  const auto vectors = read_vectors(memory, vectors_at, count);
  if (!vectors || !memory.has_range(size_at, 4)) return kFault;
  std::uint32_t total = 0;
  for (const Vector& vector : *vectors) {
    // A count that fits the 32 bits it is reported in; the rest is a short write.
    if (vector.size > std::numeric_limits<std::uint32_t>::max() - total) break;
    const auto bytes = HANGAR_TRY(memory.range(vector.address, vector.size));
    HANGAR_TRY(keep_output(command, descriptor,
                           {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    total += vector.size;
  }
  return status(memory.write_u32(size_at, total));
}

Status fd_close(HostCall call, std::uint32_t number) {
  Command& command = command_of(call);
  if (command.descriptor(number) == Descriptor::Closed) return kBadDescriptor;
  command.close(number);
  return kSuccess;
}

std::uint64_t rights_of(Descriptor descriptor) {
  return kRightPoll | (descriptor == Descriptor::Stdin ? kRightRead : kRightWrite);
}

// The type stays "unknown", as for a pipe: a character device would be taken for a terminal.
Status fd_fdstat_get(HostCall call, std::uint32_t number, std::uint32_t address) {
  const Descriptor descriptor = command_of(call).descriptor(number);
  if (descriptor == Descriptor::Closed) return kBadDescriptor;
  const GuestMemory memory = HANGAR_TRY(call.memory());
  if (!memory.write(address, std::string(kFdstatBytes, '\0'))) return kFault;
  return status(memory.write_u64(address + 8, rights_of(descriptor)));
}

Status fd_filestat_get(HostCall call, std::uint32_t number, std::uint32_t address) {
  if (command_of(call).descriptor(number) == Descriptor::Closed) return kBadDescriptor;
  return status(HANGAR_TRY(call.memory()).write(address, std::string(kFilestatBytes, '\0')));
}

// What every function answers that wants more of a descriptor than a pipe can do.
Status unless_closed(HostCall call, std::uint32_t number, Errno answer) {
  return command_of(call).descriptor(number) == Descriptor::Closed ? kBadDescriptor : answer;
}

Status fd_fdstat_set_flags(HostCall call, std::uint32_t number, std::uint32_t /*flags*/) {
  return unless_closed(call, number, kSuccess);
}
Status fd_fdstat_set_rights(HostCall call, std::uint32_t number, std::uint64_t /*base*/,
                            std::uint64_t /*inheriting*/) {
  return unless_closed(call, number, kNotSupported);
}
Status fd_filestat_set_size(HostCall call, std::uint32_t number, std::uint64_t /*size*/) {
  return unless_closed(call, number, kInvalid);
}
Status fd_filestat_set_times(HostCall call, std::uint32_t number, std::uint64_t /*access*/,
                             std::uint64_t /*change*/, std::uint32_t /*flags*/) {
  return unless_closed(call, number, kNotSupported);
}
Status fd_advise(HostCall call, std::uint32_t number, std::uint64_t /*offset*/,
                 std::uint64_t /*size*/, std::uint32_t /*advice*/) {
  return unless_closed(call, number, kIllegalSeek);
}
Status fd_allocate(HostCall call, std::uint32_t number, std::uint64_t /*offset*/,
                   std::uint64_t /*size*/) {
  return unless_closed(call, number, kNotSupported);
}
Status fd_sync(HostCall call, std::uint32_t number) {
  return unless_closed(call, number, kSuccess);
}
Status fd_pread(HostCall call, std::uint32_t number, std::uint32_t /*vectors*/,
                std::uint32_t /*count*/, std::uint64_t /*offset*/, std::uint32_t /*size*/) {
  return unless_closed(call, number, kIllegalSeek);
}
Status fd_seek(HostCall call, std::uint32_t number, std::uint64_t /*offset*/,
               std::uint32_t /*whence*/, std::uint32_t /*position*/) {
  return unless_closed(call, number, kIllegalSeek);
}
Status fd_tell(HostCall call, std::uint32_t number, std::uint32_t /*position*/) {
  return unless_closed(call, number, kIllegalSeek);
}
Status fd_readdir(HostCall call, std::uint32_t number, std::uint32_t /*bytes*/,
                  std::uint32_t /*size*/, std::uint64_t /*cookie*/, std::uint32_t /*used*/) {
  return unless_closed(call, number, kInvalid);
}
Status fd_renumber(HostCall call, std::uint32_t from, std::uint32_t /*to*/) {
  return unless_closed(call, from, kNotSupported);
}

// No directory is presented: the first descriptor that a libc asks about does not exist, and then
// it does not ask for another.
Status fd_prestat_get(HostCall /*call*/, std::uint32_t /*number*/, std::uint32_t /*prestat*/) {
  return kBadDescriptor;
}
Status fd_prestat_dir_name(HostCall /*call*/, std::uint32_t /*number*/, std::uint32_t /*path*/,
                           std::uint32_t /*size*/) {
  return kBadDescriptor;
}

// Paths are relative to directories, of which there are none.
Status path_create_directory(HostCall /*call*/, std::uint32_t, std::uint32_t, std::uint32_t) {
  return kBadDescriptor;
}
Status path_filestat_get(HostCall /*call*/, std::uint32_t, std::uint32_t, std::uint32_t,
                         std::uint32_t, std::uint32_t) {
  return kBadDescriptor;
}
Status path_filestat_set_times(HostCall /*call*/, std::uint32_t, std::uint32_t, std::uint32_t,
                               std::uint32_t, std::uint64_t, std::uint64_t, std::uint32_t) {
  return kBadDescriptor;
}
Status path_link(HostCall /*call*/, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                 std::uint32_t, std::uint32_t, std::uint32_t) {
  return kBadDescriptor;
}
Status path_open(HostCall /*call*/, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                 std::uint32_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t) {
  return kBadDescriptor;
}
Status path_readlink(HostCall /*call*/, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                     std::uint32_t, std::uint32_t) {
  return kBadDescriptor;
}
Status path_remove(HostCall /*call*/, std::uint32_t, std::uint32_t, std::uint32_t) {
  return kBadDescriptor;
}
Status path_rename(HostCall /*call*/, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                   std::uint32_t, std::uint32_t) {
  return kBadDescriptor;
}
Status path_symlink(HostCall /*call*/, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                    std::uint32_t) {
  return kBadDescriptor;
}

// There are no sockets.
Status sock_accept(HostCall call, std::uint32_t number, std::uint32_t, std::uint32_t) {
  return unless_closed(call, number, kNotSocket);
}
Status sock_recv(HostCall call, std::uint32_t number, std::uint32_t, std::uint32_t, std::uint32_t,
                 std::uint32_t, std::uint32_t) {
  return unless_closed(call, number, kNotSocket);
}
Status sock_send(HostCall call, std::uint32_t number, std::uint32_t, std::uint32_t, std::uint32_t,
                 std::uint32_t) {
  return unless_closed(call, number, kNotSocket);
}
Status sock_shutdown(HostCall call, std::uint32_t number, std::uint32_t) {
  return unless_closed(call, number, kNotSocket);
}

// What a guest waits for in poll_oneoff.
struct Subscription {
  enum Kind : std::uint8_t { kClock = 0, kRead = 1, kWrite = 2 };

  std::uint64_t user_data = 0;
  std::uint8_t kind = kClock;
  std::uint32_t descriptor = 0;  // Of the last two.
  Instant due;                   // Of clocks.
  Errno error = kSuccess;        // Known at once.
};

Subscription read_subscription(std::span<const std::byte> bytes, Instant now) {
  const auto at = [&bytes]<class T>(std::size_t offset, T value) {
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  Subscription subscription{.user_data = at(0, std::uint64_t{}), .kind = at(8, std::uint8_t{})};
  if (subscription.kind != Subscription::kClock) {
    subscription.descriptor = at(16, std::uint32_t{});
    if (subscription.kind > Subscription::kWrite) subscription.error = kInvalid;
    return subscription;
  }
  const auto clock = at(16, std::uint32_t{});
  std::uint64_t delay = at(24, std::uint64_t{});
  const bool is_absolute = (at(40, std::uint16_t{}) & 1U) != 0;
  const std::optional<std::uint64_t> clock_now = read_clock(clock);
  if (!clock_now) {
    subscription.error = kInvalid;
    return subscription;
  }
  if (is_absolute) delay -= std::min(delay, *clock_now);
  // Anything longer is for ever, and would overflow.
  constexpr std::uint64_t kDelayMax =
      std::chrono::nanoseconds(std::chrono::hours(24 * 365)).count();
  subscription.due = now + std::chrono::nanoseconds(std::min(delay, kDelayMax));
  return subscription;
}

// Event for `subscription` if it is due; nothing otherwise.
std::optional<std::string> event_of(const Command& command, const Subscription& subscription,
                                    Instant now) {
  Errno error = subscription.error;
  std::uint64_t ready_bytes = 0;
  if (error == kSuccess && subscription.kind == Subscription::kClock) {
    if (now < subscription.due) return std::nullopt;
  } else if (error == kSuccess) {
    const Descriptor descriptor = command.descriptor(subscription.descriptor);
    const bool reads = subscription.kind == Subscription::kRead;
    const bool fits = reads ? descriptor == Descriptor::Stdin
                            : descriptor == Descriptor::Stdout || descriptor == Descriptor::Stderr;
    if (!fits) error = kBadDescriptor;
    // Its end can be read too.
    ready_bytes = reads ? command.stdin_left() : limits::kFlightOutputBytesMax;
  }
  std::string event(kEventBytes, '\0');
  const auto put = [&event](std::size_t offset, auto value) {
    std::memcpy(event.data() + offset, &value, sizeof value);
  };
  put(0, subscription.user_data);
  put(8, static_cast<std::uint16_t>(error));
  put(10, subscription.kind);
  if (subscription.kind != Subscription::kClock && error == kSuccess) put(16, ready_bytes);
  return event;
}

HostTask<std::uint32_t> poll_oneoff(HostCall call, std::uint32_t subscriptions_at,
                                    std::uint32_t events_at, std::uint32_t count,
                                    std::uint32_t count_at) {
  if (count == 0 || count > kSubscriptionsMax) co_return kInvalid;
  std::vector<Subscription> subscriptions;
  Instant due = Instant::max();
  {
    const GuestMemory memory = HANGAR_CO_TRY(call.memory());
    const auto bytes = memory.range(subscriptions_at, std::uint64_t{count} * kSubscriptionBytes);
    if (!bytes || !memory.has_range(events_at, std::uint64_t{count} * kEventBytes) ||
        !memory.has_range(count_at, 4)) {
      co_return kFault;
    }
    const Instant now = io::Loop::now();
    for (std::uint32_t index = 0; index < count; ++index) {
      const Subscription subscription = read_subscription(
          bytes->subspan(std::size_t{index} * kSubscriptionBytes, kSubscriptionBytes), now);
      const bool is_clock =
          subscription.kind == Subscription::kClock && subscription.error == kSuccess;
      // Everything else answers at once.
      due = std::min(due, is_clock ? subscription.due : now);
      subscriptions.push_back(subscription);
    }
  }

  if (const Duration delay = due - io::Loop::now(); delay > Duration::zero()) {
    io::Loop& loop = call.loop();
    const Result<> slept = HANGAR_CO_TRY(co_await call.on_loop<Result<>>(
        [&loop, delay](std::stop_token stop) { return loop.sleep(delay, std::move(stop)); }));
    if (!slept) co_return std::unexpected(slept.error());
  }

  const GuestMemory memory = HANGAR_CO_TRY(call.memory());
  // A timer may be early by less than the clock's resolution; the one it was for is due.
  const Instant now = std::max(io::Loop::now(), due);
  std::uint32_t events = 0;
  for (const Subscription& subscription : subscriptions) {
    const auto event = event_of(command_of(call), subscription, now);
    if (!event) continue;
    HANGAR_CO_TRY(memory.write(events_at + events * kEventBytes, *event));
    ++events;
  }
  co_return status(memory.write_u32(count_at, events));
}

}  // namespace

std::string Command::stderr_text() const {
  if (stderr_dropped_bytes == 0) return stderr_bytes;
  return fmt::format("{}\n({} more bytes)", stderr_bytes, stderr_dropped_bytes);
}

std::string_view Command::take_stdin(std::size_t size) {
  const std::string_view bytes = std::string_view(stdin_bytes).substr(stdin_read_, size);
  stdin_read_ += bytes.size();
  return bytes;
}

void add_preview1(HostFunctions& functions) {
  functions.add<&args_get>(kModule, "args_get");
  functions.add<&args_sizes_get>(kModule, "args_sizes_get");
  functions.add<&environ_get>(kModule, "environ_get");
  functions.add<&environ_sizes_get>(kModule, "environ_sizes_get");
  functions.add<&clock_res_get>(kModule, "clock_res_get");
  functions.add<&clock_time_get>(kModule, "clock_time_get");
  functions.add<&fd_advise>(kModule, "fd_advise");
  functions.add<&fd_allocate>(kModule, "fd_allocate");
  functions.add<&fd_close>(kModule, "fd_close");
  functions.add<&fd_sync>(kModule, "fd_datasync");
  functions.add<&fd_fdstat_get>(kModule, "fd_fdstat_get");
  functions.add<&fd_fdstat_set_flags>(kModule, "fd_fdstat_set_flags");
  functions.add<&fd_fdstat_set_rights>(kModule, "fd_fdstat_set_rights");
  functions.add<&fd_filestat_get>(kModule, "fd_filestat_get");
  functions.add<&fd_filestat_set_size>(kModule, "fd_filestat_set_size");
  functions.add<&fd_filestat_set_times>(kModule, "fd_filestat_set_times");
  functions.add<&fd_pread>(kModule, "fd_pread");
  functions.add<&fd_prestat_dir_name>(kModule, "fd_prestat_dir_name");
  functions.add<&fd_prestat_get>(kModule, "fd_prestat_get");
  functions.add<&fd_pread>(kModule, "fd_pwrite");
  functions.add<&fd_read>(kModule, "fd_read");
  functions.add<&fd_readdir>(kModule, "fd_readdir");
  functions.add<&fd_renumber>(kModule, "fd_renumber");
  functions.add<&fd_seek>(kModule, "fd_seek");
  functions.add<&fd_sync>(kModule, "fd_sync");
  functions.add<&fd_tell>(kModule, "fd_tell");
  functions.add<&fd_write>(kModule, "fd_write");
  functions.add<&path_create_directory>(kModule, "path_create_directory");
  functions.add<&path_filestat_get>(kModule, "path_filestat_get");
  functions.add<&path_filestat_set_times>(kModule, "path_filestat_set_times");
  functions.add<&path_link>(kModule, "path_link");
  functions.add<&path_open>(kModule, "path_open");
  functions.add<&path_readlink>(kModule, "path_readlink");
  functions.add<&path_remove>(kModule, "path_remove_directory");
  functions.add<&path_rename>(kModule, "path_rename");
  functions.add<&path_symlink>(kModule, "path_symlink");
  functions.add<&path_remove>(kModule, "path_unlink_file");
  functions.add<&poll_oneoff>(kModule, "poll_oneoff");
  functions.add<&proc_exit>(kModule, "proc_exit");
  functions.add<&proc_raise>(kModule, "proc_raise");
  functions.add<&random_get>(kModule, "random_get");
  functions.add<&sched_yield>(kModule, "sched_yield");
  functions.add<&sock_accept>(kModule, "sock_accept");
  functions.add<&sock_recv>(kModule, "sock_recv");
  functions.add<&sock_send>(kModule, "sock_send");
  functions.add<&sock_shutdown>(kModule, "sock_shutdown");
}

}  // namespace hangar::wasm::wasi
