#include "http/client.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "http/internal/connections.h"
#include "http/internal/proxy.h"
#include "http/internal/resolver.h"
#include "http/internal/transfer.h"
#include "http/limits.h"
#include "http/simulated_network.h"
#include "io/loop.h"
#include "io/task.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::http {

namespace {

using internal::Addresses;
using internal::ProxyEnvironment;
using internal::Resolver;
using internal::Transfer;
using TransferPtr = std::shared_ptr<Transfer>;

// How often a socket is read before the rest of the loop runs: some 256 KiB.
constexpr int kReadsInARowMax = 16;

void initialize_curl() {
  static std::once_flag once;
  std::call_once(once, [] {
    HANGAR_ASSERT(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl does not start");
  });
}

// The connections of one Transport: a libcurl multi handle driven by the loop.
class Pool {
 public:
  Pool(io::Loop& loop, std::weak_ptr<const Transport> transport);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  // Sends the request as soon as it has a connection.
  void add(const TransferPtr& transfer);
  // Ends the transfer with the error that fail_with() has set.
  void drop(const TransferPtr& transfer);

  // True when no request can use its connections any more.
  [[nodiscard]] bool is_over() const { return active_.empty() && transport_.expired(); }
  [[nodiscard]] std::size_t connection_count() const { return sockets_.size(); }

 private:
  struct Socket {
    std::unique_ptr<io::Loop::Watch> read;
    std::unique_ptr<io::Loop::Watch> write;
  };

  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self, void* socket_data);
  static int on_timeout(CURLM* multi, long timeout_ms, void* self);
  void watch(curl_socket_t socket, int what);
  void set_connection_limit();
  void lift_connection_limit();
  void act(curl_socket_t socket, int events);
  // Whether a socket that is watched for reading has bytes.
  [[nodiscard]] bool has_unread(curl_socket_t socket) const;
  void finish_completed();
  void finish(const TransferPtr& transfer, CURLcode code);
  void watch_idleness(const TransferPtr& transfer);
  void watch_pace(const TransferPtr& transfer);

  io::Loop& loop_;
  std::weak_ptr<const Transport> transport_;
  CURLM* multi_;
  std::map<curl_socket_t, Socket> sockets_;
  io::Loop::Timer timer_;
  io::Loop::Timer lift_timer_;
  bool is_lifted_ = false;
  std::map<Transfer*, TransferPtr> active_;
};

Pool::Pool(io::Loop& loop, std::weak_ptr<const Transport> transport)
    : loop_(loop), transport_(std::move(transport)), multi_(curl_multi_init()) {
  HANGAR_ASSERT(multi_ != nullptr, "out of memory");
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Pool::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Pool::on_timeout);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
  curl_multi_setopt(multi_, CURLMOPT_MAX_CONCURRENT_STREAMS, limits::kStreamsPerConnectionMax);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, limits::kIdleConnectionsMax);
  set_connection_limit();
}

Pool::~Pool() {
  while (!active_.empty()) {
    const TransferPtr transfer = active_.begin()->second;
    transfer->fail_with(Error(ErrorKind::Cancelled, "the http client ends"));
    finish(transfer, CURLE_ABORTED_BY_CALLBACK);
  }
  curl_multi_cleanup(multi_);
}

void Pool::add(const TransferPtr& transfer) {
  if (!transfer->may_use_http2()) lift_connection_limit();
  transfer->on_http1 = [this] {
    if (is_lifted_) return;
    lift_timer_ = loop_.after(Duration::zero(), [this] { lift_connection_limit(); });
  };
  active_.emplace(transfer.get(), transfer);
  set_connection_limit();
  const CURLMcode code = curl_multi_add_handle(multi_, transfer->easy());
  HANGAR_ASSERT(code == CURLM_OK, curl_multi_strerror(code));
  watch_idleness(transfer);
  watch_pace(transfer);
}

void Pool::drop(const TransferPtr& transfer) {
  if (active_.contains(transfer.get())) finish(transfer, CURLE_ABORTED_BY_CALLBACK);
}

int Pool::on_socket(CURL* /*easy*/, curl_socket_t socket, int what, void* self,
                    void* /*socket_data*/) {
  static_cast<Pool*>(self)->watch(socket, what);
  return 0;
}

int Pool::on_timeout(CURLM* /*multi*/, long timeout_ms, void* self) {
  auto* pool = static_cast<Pool*>(self);
  pool->timer_.cancel();
  if (timeout_ms >= 0) {
    pool->timer_ = pool->loop_.after(std::chrono::milliseconds(timeout_ms),
                                     [pool] { pool->act(CURL_SOCKET_TIMEOUT, 0); });
  }
  return 0;
}

void Pool::watch(curl_socket_t socket, int what) {
  if (what == CURL_POLL_REMOVE) {
    sockets_.erase(socket);
    return;
  }
  Socket& watched = sockets_[socket];
  const auto set = [&](std::unique_ptr<io::Loop::Watch>& slot, bool wanted,
                       io::Loop::Direction direction, int events) {
    if (!wanted) {
      slot.reset();
    } else if (!slot) {
      slot = loop_.watch(socket, direction, [this, socket, events] { act(socket, events); });
    }
  };
  set(watched.read, (what & CURL_POLL_IN) != 0, io::Loop::Direction::Read, CURL_CSELECT_IN);
  set(watched.write, (what & CURL_POLL_OUT) != 0, io::Loop::Direction::Write, CURL_CSELECT_OUT);
}

// Without this limit, once the streams of a connection are used up, libcurl would open one
// connection for each request that waits. It grows with the requests, before they need it: libcurl
// reconsiders transfers that wait for a connection only when another one ends, and a watch does
// not end.
void Pool::set_connection_limit() {
  if (is_lifted_) return;
  curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS,
                    internal::http2_connections_max(active_.size()));
}

// A server without HTTP/2 takes one request a connection, so it gets as many connections
// as requests.
void Pool::lift_connection_limit() {
  if (std::exchange(is_lifted_, true)) return;
  curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, 0L);
  // libcurl reconsiders transfers that wait for a connection only when another one ends.
  for (const auto& [key, transfer] : active_) {
    if (!transfer->has_begun()) {
      curl_multi_remove_handle(multi_, transfer->easy());
      const CURLMcode code = curl_multi_add_handle(multi_, transfer->easy());
      HANGAR_ASSERT(code == CURLM_OK, curl_multi_strerror(code));
    }
  }
}

void Pool::act(curl_socket_t socket, int events) {
  // One action reads one or two TLS records. While the loop is busy, its rounds are long, and a
  // watch that is read so little in each round would fall behind without end.
  int actions = 0;
  do {
    int running = 0;
    const CURLMcode code = curl_multi_socket_action(multi_, socket, events, &running);
    HANGAR_ASSERT(code == CURLM_OK, curl_multi_strerror(code));
  } while (events == CURL_CSELECT_IN && ++actions < kReadsInARowMax && has_unread(socket));
  finish_completed();
}

bool Pool::has_unread(curl_socket_t socket) const {
  const auto found = sockets_.find(socket);
  if (found == sockets_.end() || !found->second.read) return false;
  int bytes = 0;
  return ::ioctl(socket, FIONREAD, &bytes) == 0 && bytes > 0;
}

void Pool::finish_completed() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    void* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    // Keeps it alive: finish() takes it out of active_.
    const TransferPtr finished = active_.at(static_cast<Transfer*>(transfer));
    finish(finished, code);
  }
}

void Pool::finish(const TransferPtr& transfer, CURLcode code) {
  const CURLMcode removed = curl_multi_remove_handle(multi_, transfer->easy());
  HANGAR_ASSERT(removed == CURLM_OK, curl_multi_strerror(removed));
  if (transfer->set_up_again(code)) {
    const CURLMcode added = curl_multi_add_handle(multi_, transfer->easy());
    HANGAR_ASSERT(added == CURLM_OK, curl_multi_strerror(added));
    return;
  }
  active_.erase(transfer.get());
  transfer->on_http1 = nullptr;
  transfer->complete(code);
}

// Checks at the deadline, and again later if something has arrived since.
void Pool::watch_idleness(const TransferPtr& transfer) {
  const auto deadline = transfer->idle_deadline();
  if (!deadline) return;
  transfer->idle_timer =
      loop_.after(*deadline - io::Loop::now(), [this, weak = std::weak_ptr(transfer)] {
        const TransferPtr alive = weak.lock();
        if (!alive || !active_.contains(alive.get())) return;
        if (io::Loop::now() < *alive->idle_deadline()) return watch_idleness(alive);
        alive->fail_with(alive->idle_error());
        drop(alive);
      });
}

void Pool::watch_pace(const TransferPtr& transfer) {
  const auto window = transfer->request().pace_window;
  if (window.count() == 0) return;
  transfer->pace_timer = loop_.after(window, [this, weak = std::weak_ptr(transfer)] {
    const TransferPtr alive = weak.lock();
    if (!alive || !active_.contains(alive.get())) return;
    if (alive->keeps_pace()) return watch_pace(alive);
    alive->fail_with(alive->pace_error());
    drop(alive);
  });
}

}  // namespace

class Client::Impl {
 public:
  Impl(io::Loop& loop, ClientOptions options)
      : loop_(loop), resolver_(std::make_shared<Resolver>(loop, std::move(options.name_servers))) {
    initialize_curl();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { resolver_->stop(); }

  io::Loop& loop() { return loop_; }
  [[nodiscard]] const ProxyEnvironment& proxies() const { return proxies_; }
  [[nodiscard]] const std::shared_ptr<Resolver>& resolver() const { return resolver_; }

  void start(const TransferPtr& transfer) { pool_of(transfer->request().transport).add(transfer); }

  void cancel(const TransferPtr& transfer) {
    const auto found = pools_.find(transfer->request().transport.get());
    if (found != pools_.end()) found->second->drop(transfer);
  }

  // Removes pools whose Transport is gone. Called between requests, never from inside libcurl.
  void sweep() {
    std::erase_if(pools_, [](const auto& entry) { return entry.second->is_over(); });
  }

  [[nodiscard]] std::size_t busy_connection_count() const {
    std::size_t count = 0;
    for (const auto& [transport, pool] : pools_)
      count += pool->connection_count();
    return count;
  }

  const std::shared_ptr<const Transport>& default_transport() { return default_transport_; }

 private:
  Pool& pool_of(const std::shared_ptr<const Transport>& transport) {
    // A new Transport may have the address of a destroyed one.
    sweep();
    auto& pool = pools_[transport.get()];
    if (!pool) pool = std::make_unique<Pool>(loop_, transport);
    return *pool;
  }

  io::Loop& loop_;
  const ProxyEnvironment proxies_ = ProxyEnvironment::of_process();
  const std::shared_ptr<Resolver> resolver_;
  std::shared_ptr<const Transport> default_transport_ = std::make_shared<const Transport>();
  std::map<const Transport*, std::unique_ptr<Pool>> pools_;
};

namespace {

Error stopping() {
  return {ErrorKind::Cancelled, "stopping"};
}

}  // namespace

Client::Client(io::Loop& loop, ClientOptions options)
    : impl_(std::make_shared<Impl>(loop, std::move(options))) {}
Client::~Client() = default;

io::Task<Result<Response>> Client::send(Request request, std::stop_token stop) {
  if (!request.transport) request.transport = impl_->default_transport();
  if (SimulatedNetwork* const network = SimulatedNetwork::current()) {
    return network->carry(impl_->loop(), std::move(request), std::nullopt, std::move(stop));
  }
  return run(impl_->loop(), impl_, std::move(request), std::nullopt, std::move(stop));
}

io::Task<Result<Response>> Client::stream(Request request, StreamHandler handler,
                                          std::stop_token stop) {
  if (!request.transport) request.transport = impl_->default_transport();
  if (SimulatedNetwork* const network = SimulatedNetwork::current()) {
    return network->carry(impl_->loop(), std::move(request), std::move(handler), std::move(stop));
  }
  return run(impl_->loop(), impl_, std::move(request), std::move(handler), std::move(stop));
}

std::size_t Client::busy_connection_count() const {
  return impl_->busy_connection_count();
}

io::Task<Result<Response>> Client::run(io::Loop& loop, std::weak_ptr<Impl> impl, Request request,
                                       std::optional<StreamHandler> handler, std::stop_token stop) {
  auto transfer = std::make_shared<Transfer>(loop, std::move(request), std::move(handler));
  {
    const auto alive = impl.lock();
    if (!alive) co_return std::unexpected(stopping());
    HANGAR_CO_TRY(transfer->prepare(alive->proxies()));
  }
  while (true) {
    if (stop.stop_requested()) co_return std::unexpected(stopping());
    if (!transfer->peer().is_address) HANGAR_CO_TRY(co_await resolve(impl, transfer, stop));
    HANGAR_CO_TRY(transfer->begin(io::Loop::now()));
    Result<Response> response = co_await carry_out(loop, impl, transfer, stop);
    if (!response || !transfer->is_redirected()) co_return response;
    const auto alive = impl.lock();
    if (!alive) co_return std::unexpected(stopping());
    transfer = HANGAR_CO_TRY(transfer->follow(alive->proxies()));
  }
}

// Looks up the addresses of the transfer's peer.
io::Task<Result<>> Client::resolve(std::weak_ptr<Impl> impl, TransferPtr transfer,
                                   std::stop_token stop) {
  std::shared_ptr<Resolver> resolver;
  if (const auto alive = impl.lock()) resolver = alive->resolver();
  if (!resolver) co_return std::unexpected(stopping());
  Resolver::Question question{.name = transfer->peer().host,
                              .requester = transfer->request().requester,
                              .patience = transfer->connect_patience()};
  Result<Addresses> addresses =
      co_await Resolver::resolve(std::move(resolver), std::move(question), std::move(stop));
  if (!addresses) {
    const Error& error = addresses.error();
    co_return std::unexpected(error.kind() == ErrorKind::Cancelled ? stopping()
                                                                   : transfer->unsent(error));
  }
  co_return transfer->set_addresses(*std::move(addresses));
}

// Everything that touches libcurl's connections is posted to the loop: a request may be made, and a
// stop requested, inside a callback of libcurl.
io::Task<Result<Response>> Client::carry_out(io::Loop& loop, std::weak_ptr<Impl> impl,
                                             TransferPtr transfer, std::stop_token stop) {
  loop.post([impl, transfer] {
    const auto still_alive = impl.lock();
    if (!still_alive) transfer->fail_with(stopping());
    if (transfer->has_failed()) return transfer->complete(CURLE_ABORTED_BY_CALLBACK);
    still_alive->start(transfer);
  });
  const std::stop_callback on_stop(stop, [&loop, impl, transfer] {
    transfer->fail_with(stopping());
    loop.post([impl, transfer] {
      if (const auto still_alive = impl.lock()) still_alive->cancel(transfer);
    });
  });
  co_return co_await transfer->done().wait();
}

}  // namespace hangar::http
