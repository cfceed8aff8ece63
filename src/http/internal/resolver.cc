#include "http/internal/resolver.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <ares.h>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::http::internal {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The first datagram is repeated after 1 s and again 2 s later; a lookup at one silent server ends
// after 7 s, before the usual connect time-out of 10 s. glibc waits 5 s before its first retry, so
// a single lost datagram would cost that much.
constexpr int kTryMs = 1000;
constexpr int kTries = 3;
// A lookup over several silent servers and search domains is stopped after this time, with or
// without a waiter.
constexpr seconds kLookupMax{10};

// Concurrent lookups of one requester: a module has a registry, a token server and an object store.
constexpr std::size_t kLookupsPerRequesterMax = 8;
// Concurrent lookups of all tenants together, each with a socket or two.
constexpr std::size_t kTenantLookupsMax = 128;
// Names whose answers are kept for one requester.
constexpr std::size_t kNamesPerRequesterMax = 64;

// Addresses of one name that are kept of each family. A strange name server may give thousands in
// one answer, and each is judged and handed to libcurl for each request.
constexpr std::size_t kAddressesPerFamilyMax = 16;

// CoreDNS answers for Services with a TTL of 5 to 30 s.
constexpr seconds kFreshMax{30};
// An outage of the name servers should not cut off a server that was reachable before it (RFC
// 8767).
constexpr seconds kStaleMax{3600};
// How often requesters that no longer exist are removed with their names.
constexpr seconds kSweepInterval{60};
// How long a request waits for a new answer when there is an old one.
constexpr milliseconds kStaleWait{1000};

void initialize_ares() {
  static std::once_flag once;
  std::call_once(once, [] {
    HANGAR_ASSERT(ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS, "c-ares does not start");
  });
}

std::string text_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address.sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  } else if (address.sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  }
  if (bytes == nullptr) return {};
  return inet_ntop(address.sa_family, bytes, text.data(), text.size()) == nullptr ? ""
                                                                                  : text.data();
}

}  // namespace

// The lookup of one name, with its own c-ares channel: its destructor closes its sockets, and its
// waits hold up no other lookup.
class Resolver::Lookup : public std::enable_shared_from_this<Resolver::Lookup> {
 public:
  using OnDone = std::move_only_function<void(std::expected<Answer, Failure>)>;

  Lookup(io::Loop& loop, OnDone on_done) : loop_(loop), on_done_(std::move(on_done)) {}
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  ~Lookup() {
    on_done_ = nullptr;
    if (channel_ != nullptr) ares_destroy(channel_);
  }

  // Calls on_done once, later, unless the Lookup is destroyed before.
  void start(const std::string& name, const std::string& servers) {
    ares_options options{};
    options.timeout = kTryMs;
    options.tries = kTries;
    options.sock_state_cb = &Lookup::on_socket;
    options.sock_state_cb_data = this;
    const int status = ares_init_options(
        &channel_, &options, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
    if (status != ARES_SUCCESS) return end_with(failure(status));
    if (!servers.empty()) {
      const int set = ares_set_servers_ports_csv(channel_, servers.c_str());
      if (set != ARES_SUCCESS) return end_with(failure(set));
    }
    give_up_ = loop_.after(kLookupMax, [this] { end_with(failure(ARES_ETIMEOUT)); });
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    ares_getaddrinfo(channel_, name.c_str(), nullptr, &hints, &Lookup::on_addresses, this);
    set_timer();
  }

 private:
  struct Socket {
    std::unique_ptr<io::Loop::Watch> read;
    std::unique_ptr<io::Loop::Watch> write;
  };

  static std::unexpected<Failure> failure(int status) {
    return std::unexpected(
        Failure{.text = ares_strerror(status),
                .is_authoritative = status == ARES_ENOTFOUND || status == ARES_ENODATA});
  }

  static void on_socket(void* self, ares_socket_t socket, int readable, int writable) {
    static_cast<Lookup*>(self)->watch(socket, readable != 0, writable != 0);
  }

  void watch(ares_socket_t socket, bool readable, bool writable) {
    if (!readable && !writable) {
      sockets_.erase(socket);
      return;
    }
    Socket& watched = sockets_[socket];
    const auto set = [&](std::unique_ptr<io::Loop::Watch>& slot, bool wanted,
                         io::Loop::Direction direction) {
      if (!wanted) {
        slot.reset();
      } else if (!slot) {
        slot = loop_.watch(socket, direction, [this, socket, direction] {
          const bool reads = direction == io::Loop::Direction::Read;
          process(reads ? socket : ARES_SOCKET_BAD, reads ? ARES_SOCKET_BAD : socket);
        });
      }
    };
    set(watched.read, readable, io::Loop::Direction::Read);
    set(watched.write, writable, io::Loop::Direction::Write);
  }

  void process(ares_socket_t read, ares_socket_t write) {
    ares_process_fd(channel_, read, write);
    set_timer();
  }

  void set_timer() {
    timeval next{};
    if (ares_timeout(channel_, nullptr, &next) == nullptr) return timer_.cancel();
    timer_ = loop_.after(seconds(next.tv_sec) + std::chrono::microseconds(next.tv_usec),
                         [this] { process(ARES_SOCKET_BAD, ARES_SOCKET_BAD); });
  }

  static void on_addresses(void* self, int status, int /*timeouts*/, ares_addrinfo* found) {
    const std::unique_ptr<ares_addrinfo, decltype(&ares_freeaddrinfo)> owned(found,
                                                                             &ares_freeaddrinfo);
    auto* lookup = static_cast<Lookup*>(self);
    if (status != ARES_SUCCESS) return lookup->end_with(failure(status));
    Answer answer{.addresses = {}, .time_to_live = kFreshMax};
    std::size_t ipv6_count = 0;
    std::size_t ipv4_count = 0;
    for (const ares_addrinfo_node* node = owned ? owned->nodes : nullptr; node != nullptr;
         node = node->ai_next) {
      std::size_t& count = node->ai_addr->sa_family == AF_INET6 ? ipv6_count : ipv4_count;
      if (count == kAddressesPerFamilyMax) continue;
      std::string text = text_of(*node->ai_addr);
      if (text.empty() || std::ranges::find(answer.addresses, text) != answer.addresses.end()) {
        continue;
      }
      ++count;
      answer.addresses.push_back(std::move(text));
      answer.time_to_live = std::min<Duration>(answer.time_to_live, seconds(node->ai_ttl));
    }
    if (answer.addresses.empty()) return lookup->end_with(failure(ARES_ENODATA));
    lookup->end_with(std::move(answer));
  }

  // c-ares calls this from inside its own functions: the channel may be destroyed only after
  // they return.
  void end_with(std::expected<Answer, Failure> answer) {
    if (!on_done_) return;
    loop_.post([weak = weak_from_this(), on_done = std::exchange(on_done_, nullptr),
                answer = std::move(answer)]() mutable {
      if (const auto alive = weak.lock()) on_done(std::move(answer));
    });
  }

  io::Loop& loop_;
  OnDone on_done_;
  ares_channel channel_ = nullptr;
  std::map<ares_socket_t, Socket> sockets_;
  io::Loop::Timer timer_;
  io::Loop::Timer give_up_;
};

Resolver::Resolver(io::Loop& loop, std::string servers)
    : loop_(loop), servers_(std::move(servers)) {
  initialize_ares();
}

Resolver::~Resolver() = default;

io::Task<Result<Addresses>> Resolver::resolve(std::shared_ptr<Resolver> self, Question question,
                                              std::stop_token stop) {
  const auto [waiter, known] = self->ask(question);
  const io::Loop::Timer give_up =
      self->loop_.after(question.patience, [waiter, name = question.name] {
        waiter.set(fail(ErrorKind::Unavailable,
                        fmt::format("no answer about the host {} from the name servers", name)));
      });
  const io::Loop::Timer make_do = self->loop_.after(kStaleWait, [waiter, known] {
    if (!known.empty()) waiter.set(known);
  });
  const std::stop_callback on_stop(
      stop, [waiter] { waiter.set(fail(ErrorKind::Cancelled, "stopping")); });
  co_return co_await waiter.wait();
}

void Resolver::stop() {
  is_stopped_ = true;
  for (auto& [requester, state] : std::exchange(requesters_, {})) {
    for (auto& [name, at] : state.names) {
      for (const Waiter& waiter : at.waiters)
        waiter.set(fail(ErrorKind::Cancelled, "stopping"));
    }
  }
}

std::size_t Resolver::lookup_count() const {
  std::size_t count = 0;
  for (const auto& [requester, state] : requesters_)
    count += state.running;
  return count;
}

Resolver::Asked Resolver::ask(const Question& question) {
  Waiter waiter(loop_);
  if (is_stopped_) {
    waiter.set(fail(ErrorKind::Cancelled, "stopping"));
    return {.waiter = std::move(waiter), .known = {}};
  }
  const Instant now = io::Loop::now();
  Requester& requester = requesters_[question.requester];
  Name& name = requester.names[question.name];
  if (now < name.fresh_until) {
    waiter.set(name.known);
    return {.waiter = std::move(waiter), .known = {}};
  }
  // Removes waiters that have timed out or been cancelled.
  std::erase_if(name.waiters, &Waiter::is_set);
  name.waiters.push_back(waiter);
  Asked asked{.waiter = std::move(waiter), .known = {}};
  if (now < name.stale_until) asked.known = name.known;
  if (name.is_idle()) {
    name.is_queued = true;
    requester.queue.push_back(question.name);
    start_next();
  }
  return asked;
}

// The requesters that wait for a free place get one in turn.
void Resolver::start_next() {
  const auto may_start = [this](const auto& entry) {
    const auto& [requester, state] = entry;
    if (state.queue.empty()) return false;
    if (requester.empty()) return true;
    return state.running < kLookupsPerRequesterMax && tenant_lookups_ < kTenantLookupsMax;
  };
  while (true) {
    auto next = std::find_if(requesters_.upper_bound(served_last_), requesters_.end(), may_start);
    if (next == requesters_.end()) {
      next = std::find_if(requesters_.begin(), requesters_.end(), may_start);
    }
    if (next == requesters_.end()) return;
    served_last_ = next->first;
    const std::string name = std::move(next->second.queue.front());
    next->second.queue.pop_front();
    start(next->first, name);
  }
}

void Resolver::start(const std::string& requester, const std::string& name) {
  Requester& state = requesters_.at(requester);
  Name& at = state.names.at(name);
  at.is_queued = false;
  // Every waiter has left while the name was queued.
  if (std::ranges::all_of(at.waiters, &Waiter::is_set)) {
    at.waiters.clear();
    return;
  }
  ++state.running;
  if (!requester.empty()) ++tenant_lookups_;
  at.lookup = std::make_shared<Lookup>(
      loop_, [this, requester, name](std::expected<Answer, Failure> answer) {
        on_answer(requester, name, std::move(answer));
      });
  at.lookup->start(name, servers_);
}

void Resolver::on_answer(const std::string& requester, const std::string& name,
                         std::expected<Answer, Failure> answer) {
  const Instant now = io::Loop::now();
  Requester& state = requesters_.at(requester);
  Name& at = state.names.at(name);
  const std::shared_ptr<Lookup> ended = std::exchange(at.lookup, nullptr);
  --state.running;
  if (!requester.empty()) --tenant_lookups_;
  if (answer) {
    at.known = std::move(answer->addresses);
    at.fresh_until = now + answer->time_to_live;
    at.stale_until = now + kStaleMax;
  } else if (answer.error().is_authoritative) {
    at.stale_until = now;
  }
  const bool is_known = answer.has_value() || now < at.stale_until;
  for (const Waiter& waiter : std::exchange(at.waiters, {})) {
    waiter.set(is_known
                   ? Result<Addresses>(at.known)
                   : fail(ErrorKind::Unavailable, fmt::format("could not resolve the host {}: {}",
                                                              name, answer.error().text)));
  }
  forget_old(state.names, now);
  if (now >= next_sweep_) {
    next_sweep_ = now + kSweepInterval;
    for (auto& [id, other] : requesters_)
      forget_old(other.names, now);
    std::erase_if(requesters_, [](const auto& entry) { return entry.second.names.empty(); });
  }
  start_next();
}

void Resolver::forget_old(Names& names, Instant now) {
  std::erase_if(names, [now](const auto& entry) {
    return entry.second.is_idle() && now >= entry.second.stale_until;
  });
  while (names.size() > kNamesPerRequesterMax) {
    const auto oldest = std::ranges::min_element(names, {}, [](const auto& entry) {
      return entry.second.is_idle() ? entry.second.stale_until : Instant::max();
    });
    if (!oldest->second.is_idle()) break;
    names.erase(oldest);
  }
}

}  // namespace hangar::http::internal
