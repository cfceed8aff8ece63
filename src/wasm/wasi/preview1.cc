#include "wasm/wasi/preview1.h"

#include "base/limits.h"
#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/host_task.h"
#include "wasm/limits.h"
#include "wasm/wasi/c_strings.h"
#include "wasm/wasi/calls.h"
#include "wasm/wasi/errno.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::wasm::wasi {

namespace {

using Kind = Descriptor::Kind;

// For one poll_oneoff: a clock, and each standard stream twice, would be seven.
constexpr std::uint32_t kSubscriptionsMax = 256;
// For one random_get. Filling the buffer cannot be interrupted: this much takes 50 ms.
constexpr std::uint32_t kRandomBytesMax = 16 * limits::kMiB;

// Layouts of preview 1, in bytes.
constexpr std::uint32_t kSubscriptionBytes = 48;
constexpr std::uint32_t kEventBytes = 32;

// Arguments and environment have the same form: a list of pointers, and the strings.
Status write_strings(HostCall call, const CStrings& strings, std::uint32_t pointers,
                     std::uint32_t bytes) {
  const GuestMemory memory = HANGAR_TRY(call.memory());
  std::uint32_t at = bytes;
  for (std::string_view rest = strings.bytes(); !rest.empty();) {
    const std::string_view with_null = rest.substr(0, rest.find('\0') + 1);
    if (!memory.write_u32(pointers, at) || !memory.write(at, with_null)) return kFault;
    at += static_cast<std::uint32_t>(with_null.size());
    pointers += 4;
    rest.remove_prefix(with_null.size());
  }
  return kSuccess;
}

Status write_string_sizes(HostCall call, const CStrings& strings, std::uint32_t count,
                          std::uint32_t bytes) {
  const GuestMemory memory = HANGAR_TRY(call.memory());
  if (!memory.write_u32(count, static_cast<std::uint32_t>(strings.count()))) return kFault;
  return status(memory.write_u32(bytes, static_cast<std::uint32_t>(strings.bytes().size())));
}

Status args_get(HostCall call, std::uint32_t pointers, std::uint32_t bytes) {
  return write_strings(call, process_of(call).arguments, pointers, bytes);
}

Status args_sizes_get(HostCall call, std::uint32_t count, std::uint32_t bytes) {
  return write_string_sizes(call, process_of(call).arguments, count, bytes);
}

Status environ_get(HostCall call, std::uint32_t pointers, std::uint32_t bytes) {
  return write_strings(call, process_of(call).environment, pointers, bytes);
}

Status environ_sizes_get(HostCall call, std::uint32_t count, std::uint32_t bytes) {
  return write_string_sizes(call, process_of(call).environment, count, bytes);
}

enum Clock : std::uint32_t { kRealtime = 0, kMonotonic = 1 };

// std::nullopt for the clocks of processor time, which are withheld from guests.
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
  fill_random(*bytes);
  return kSuccess;
}

Result<> proc_exit(HostCall call, std::uint32_t code) {
  process_of(call).exit_code = code;
  return call.leave();
}

Status sched_yield(HostCall /*call*/) {
  return kSuccess;
}

Status proc_raise(HostCall /*call*/, std::uint32_t /*signal*/) {
  return kNotImplemented;
}

// There are no sockets.
Status no_socket(HostCall call, std::uint32_t number) {
  const bool is_closed = process_of(call).descriptor(number).kind == Kind::Closed;
  return is_closed ? kBadDescriptor : kNotSocket;
}

Status sock_accept(HostCall call, std::uint32_t number, std::uint32_t, std::uint32_t) {
  return no_socket(call, number);
}
Status sock_recv(HostCall call, std::uint32_t number, std::uint32_t, std::uint32_t, std::uint32_t,
                 std::uint32_t, std::uint32_t) {
  return no_socket(call, number);
}
Status sock_send(HostCall call, std::uint32_t number, std::uint32_t, std::uint32_t, std::uint32_t,
                 std::uint32_t) {
  return no_socket(call, number);
}
Status sock_shutdown(HostCall call, std::uint32_t number, std::uint32_t) {
  return no_socket(call, number);
}

// One subscription of poll_oneoff.
struct Subscription {
  enum Kind : std::uint8_t { kClock = 0, kRead = 1, kWrite = 2 };

  std::uint64_t user_data = 0;
  std::uint8_t kind = kClock;
  std::uint32_t descriptor = 0;  // Only for the last two kinds.
  Instant due;                   // Only for clocks.
  Errno error = kSuccess;        // An error that is known at once.
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
  // A longer delay would overflow; it counts as infinite.
  constexpr std::uint64_t kDelayMax =
      std::chrono::nanoseconds(std::chrono::hours(24 * 365)).count();
  subscription.due = now + std::chrono::nanoseconds(std::min(delay, kDelayMax));
  return subscription;
}

// How many bytes can be read from or written to `descriptor` at once; std::nullopt when it does not
// support that.
std::optional<std::uint64_t> ready_bytes_of(Process& process, const Descriptor& descriptor,
                                            bool reads) {
  switch (descriptor.kind) {
    case Kind::Stdin:  // The end of input counts as readable.
      return reads ? std::optional<std::uint64_t>(process.stdin_left()) : std::nullopt;
    case Kind::Idle:
      return reads ? std::optional<std::uint64_t>(0) : std::nullopt;
    case Kind::Stdout:
    case Kind::Stderr:
      return reads ? std::nullopt : std::optional<std::uint64_t>(limits::kFlightOutputBytesMax);
    case Kind::File: {
      if (!reads) return std::nullopt;
      const std::uint64_t size = process.node(descriptor).content.size();
      return size - std::min(size, descriptor.offset);
    }
    default:
      return std::nullopt;
  }
}

// The event for `subscription` if it is due; otherwise std::nullopt.
std::optional<std::string> event_of(Process& process, const Subscription& subscription,
                                    Instant now) {
  Errno error = subscription.error;
  std::uint64_t ready_bytes = 0;
  if (error == kSuccess && subscription.kind == Subscription::kClock) {
    if (now < subscription.due) return std::nullopt;
  } else if (error == kSuccess) {
    const std::optional<std::uint64_t> ready =
        ready_bytes_of(process, process.descriptor(subscription.descriptor),
                       subscription.kind == Subscription::kRead);
    if (!ready) error = kBadDescriptor;
    ready_bytes = ready.value_or(0);
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

// True when the subscription is to the idle descriptor.
bool is_for_idleness(Process& process, const Subscription& subscription) {
  return subscription.kind == Subscription::kRead && subscription.error == kSuccess &&
         process.descriptor(subscription.descriptor).kind == Kind::Idle;
}

HostTask<std::uint32_t> poll_oneoff(HostCall call, std::uint32_t subscriptions_at,
                                    std::uint32_t events_at, std::uint32_t count,
                                    std::uint32_t count_at) {
  if (count == 0 || count > kSubscriptionsMax) co_return kInvalid;
  std::vector<Subscription> subscriptions;
  Instant due = Instant::max();
  bool asks_for_idleness = false;
  Process& process = process_of(call);
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
      if (is_for_idleness(process, subscription)) {
        asks_for_idleness = true;
      } else {
        // All other subscriptions are due at once.
        due = std::min(due, is_clock ? subscription.due : now);
      }
      subscriptions.push_back(subscription);
    }
  }

  const Duration delay = due - io::Loop::now();
  const bool is_idle = asks_for_idleness && delay > Duration::zero();
  if (is_idle) {
    process.on_idle(due);
  } else if (delay > Duration::zero()) {
    io::Loop& loop = call.loop();
    const Result<> slept = HANGAR_CO_TRY(co_await call.on_loop<Result<>>(
        [&loop, delay](std::stop_token stop) { return loop.sleep(delay, std::move(stop)); }));
    if (!slept) co_return std::unexpected(slept.error());
  }

  const GuestMemory memory = HANGAR_CO_TRY(call.memory());
  // A timer may fire early by less than the clock's resolution; its subscription counts as due.
  const Instant now = is_idle ? io::Loop::now() : std::max(io::Loop::now(), due);
  std::uint32_t events = 0;
  for (const Subscription& subscription : subscriptions) {
    if (is_idle != is_for_idleness(process, subscription)) continue;
    const auto event = event_of(process, subscription, now);
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

Result<> Command::print(OutputStream stream, std::string_view bytes) {
  if (stream == OutputStream::Stdout) {
    if (bytes.size() > stdout_bytes_max - stdout_bytes.size()) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("stdout is larger than {} bytes", stdout_bytes_max));
    }
    stdout_bytes += bytes;
    return {};
  }
  const std::uint64_t left = stderr_bytes_max - stderr_bytes.size();
  stderr_bytes += bytes.substr(0, left);
  stderr_dropped_bytes += bytes.size() - std::min<std::uint64_t>(bytes.size(), left);
  return {};
}

std::string_view Command::take_stdin(std::size_t size) {
  const std::string_view bytes = std::string_view(stdin_bytes).substr(stdin_read_, size);
  stdin_read_ += bytes.size();
  return bytes;
}

void add_preview1(HostFunctions& functions) {
  add_descriptor_functions(functions);
  functions.add<&args_get>(kModule, "args_get");
  functions.add<&args_sizes_get>(kModule, "args_sizes_get");
  functions.add<&environ_get>(kModule, "environ_get");
  functions.add<&environ_sizes_get>(kModule, "environ_sizes_get");
  functions.add<&clock_res_get>(kModule, "clock_res_get");
  functions.add<&clock_time_get>(kModule, "clock_time_get");
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
