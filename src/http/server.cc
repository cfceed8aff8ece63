#include "http/server.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "http/limits.h"
#include "http/listen_address.h"
#include "io/asio.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/beast/version.hpp>
#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/crypto.h>
#include <openssl/objects.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::http {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

// Responses that need no room: probes and refusals.
constexpr std::uint64_t kUncountedResponseBytes = 4 * limits::kKiB;

// Lets a task await one of Asio's operations.
template <class Start>
io::Task<error_code> run(io::Loop& loop, Start start) {
  const io::OneShot<error_code> done(loop);
  start([done](const error_code& error, auto&&...) { done.set(error); });
  co_return co_await done.wait();
}

Result<std::shared_ptr<asio::ssl::context>> make_tls(const ServerOptions::Tls& tls) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  error_code error;
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                           asio::ssl::context::no_tlsv1_1,
                       error);
  if (!error) context->use_certificate_chain(asio::buffer(tls.certificate_pem), error);
  if (error) {
    return fail(ErrorKind::InvalidInput,
                "the server's certificate is not usable: " + error.message());
  }
  context->use_private_key(asio::buffer(tls.key_pem), asio::ssl::context::pem, error);
  if (error) {
    return fail(ErrorKind::InvalidInput,
                "the key of the server's certificate is not usable: " + error.message());
  }
  if (tls.client_ca_pem.empty()) return context;
  context->add_certificate_authority(asio::buffer(tls.client_ca_pem), error);
  if (!error) {
    context->set_verify_mode(tls.client_is_optional
                                 ? asio::ssl::verify_peer
                                 : asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert,
                             error);
  }
  if (error) {
    return fail(ErrorKind::InvalidInput,
                "the certificate authority of clients is not usable: " + error.message());
  }
  // OpenSSL refuses to resume a session with a client certificate unless the session has a
  // context id.
  constexpr std::string_view kSessions = "hangar";
  SSL_CTX_set_session_id_context(context->native_handle(),
                                 reinterpret_cast<const unsigned char*>(kSessions.data()),
                                 kSessions.size());
  return context;
}

// The subject of the certificate that the client presented.
struct ClientSubject {
  std::optional<std::string> name;  // std::nullopt: no certificate, or no valid one.
  std::vector<std::string> organizations;
};

std::vector<std::string> texts_of(const X509_NAME* subject, int field) {
  std::vector<std::string> texts;
  for (int index = -1; (index = X509_NAME_get_index_by_NID(subject, field, index)) >= 0;) {
    unsigned char* text = nullptr;
    const int length =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)));
    const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owned(
        text, [](unsigned char* bytes) { OPENSSL_free(bytes); });
    texts.emplace_back(text, text + std::max(length, 0));
  }
  return texts;
}

ClientSubject client_of(TlsStream& stream) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      SSL_get1_peer_certificate(stream.native_handle()), &X509_free);
  if (!certificate || SSL_get_verify_result(stream.native_handle()) != X509_V_OK) return {};
  const X509_NAME* const subject = X509_get_subject_name(certificate.get());
  std::vector<std::string> names = texts_of(subject, NID_commonName);
  // Programs disagree on which of several common names counts, so none does.
  return {.name = names.size() == 1 ? std::move(names.front()) : std::string(),
          .organizations = texts_of(subject, NID_organizationName)};
}

// std::nullopt when the client has already disconnected.
std::optional<asio::ip::address> peer_of(const tcp::socket& socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  asio::ip::address address = peer.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return address;
}

// A machine with IPv6 can choose addresses from its own /64 network.
std::string source_of(const asio::ip::address& address) {
  if (address.is_v4()) return address.to_string();
  constexpr unsigned short kNetworkBits = 64;
  return asio::ip::make_network_v6(address.to_v6(), kNetworkBits).canonical().to_string();
}

bool is_loopback(const asio::ip::address& address) {
  return address == asio::ip::address(asio::ip::address_v4::loopback()) ||
         address == asio::ip::address(asio::ip::address_v6::loopback());
}

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

ServerRequest to_request(bhttp::request<bhttp::string_body> message) {
  ServerRequest request;
  request.method = view(message.method_string());
  const std::string_view target = view(message.target());
  const std::size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string_view::npos) request.query = target.substr(mark + 1);
  for (const auto& field : message)
    request.headers.emplace_back(view(field.name_string()), view(field.value()));
  request.body = std::move(message.body());
  return request;
}

bhttp::response<bhttp::string_body> to_message(Response response, unsigned version, bool is_head) {
  bhttp::response<bhttp::string_body> message;
  message.version(version);
  message.result(static_cast<unsigned>(response.status));
  for (const auto& [name, value] : response.headers)
    message.insert(name, value);
  message.content_length(response.body.size());
  if (!is_head) message.body() = std::move(response.body);
  return message;
}

// Replaces Beast's own writer, whose templates for each kind of stream take half of this folder's
// compilation time.
std::string head_of(const bhttp::response<bhttp::string_body>& message) {
  std::string head =
      fmt::format("HTTP/{}.{} {} {}\r\n", message.version() / 10, message.version() % 10,
                  message.result_int(), view(message.reason()));
  for (const auto& field : message) {
    head += fmt::format("{}: {}\r\n", view(field.name_string()), view(field.value()));
  }
  return head + "\r\n";
}

Response refuse(int status, std::string why) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = std::move(why) + "\n"};
}

// The response to a client whose request could not be read; status 0: none, the client
// has disconnected.
Response refuse(const error_code& error) {
  if (error == bhttp::error::body_limit) return refuse(413, "the body is too large");
  if (error == bhttp::error::header_limit) return refuse(431, "the headers are too large");
  if (error == asio::error::no_buffer_space) {
    return refuse(503, "too much is being sent at once: try again");
  }
  if (error.category() == bhttp::make_error_code(bhttp::error::bad_method).category() &&
      error != bhttp::error::end_of_stream && error != bhttp::error::partial_message) {
    return refuse(400, error.message());
  }
  return {};
}

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(io::Loop& loop, ServerOptions options, Handler handler, Log log)
      : loop_(loop),
        options_(std::move(options)),
        handler_(std::move(handler)),
        log_(std::move(log)),
        acceptor_(loop.asio().context),
        changed_(loop) {}

  Result<> start();
  Result<> set_certificate(const ServerOptions::Tls& tls);
  io::Task<> stop(Duration grace);
  void close();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::size_t connection_count() const { return connections_.size(); }

 private:
  enum class Phase : std::uint8_t {
    Idle,      // No byte of the next request has arrived.
    Reading,   // A part of the request, or of the handshake, has arrived.
    Handling,  // The handler works on it.
    Writing,   // The client receives the response.
    Leaving,   // The server has ended it.
  };
  // The resources that the connections of one source hold together.
  struct Source {
    std::size_t connections = 0;
    std::uint64_t bodies_bytes = 0;
    std::uint64_t responses_bytes = 0;  // Without connections that the server has ended.
  };
  using Sources = std::map<std::string, Source>;
  // What stop() and make_room() need to know about a connection while it is served.
  struct Connection {
    Connection(Impl& server_in, PlainStream& stream_in, const asio::ip::address& peer)
        : server(server_in),
          stream(stream_in),
          source(server.sources_.try_emplace(source_of(peer)).first),
          is_from_loopback(is_loopback(peer)),
          since(io::Loop::now()) {
      ++source->second.connections;
      server.connections_.insert(this);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() {
      hold(0);
      release_response();
      if (--source->second.connections == 0) server.sources_.erase(source);
      server.connections_.erase(this);
      server.changed_.notify_all();
    }
    void enter(Phase next) {
      if (phase == Phase::Leaving) return;
      phase = next;
      since = io::Loop::now();
    }
    // Sets how many bytes of a body it holds.
    void hold(std::uint64_t bytes) {
      server.bodies_bytes_ += bytes - body_bytes;
      source->second.bodies_bytes += bytes - body_bytes;
      body_bytes = bytes;
    }
    // Counts the body of a response, until release_response().
    void hold_response(std::uint64_t bytes) {
      response_bytes = bytes;
      source->second.responses_bytes += bytes;
      server.responses_bytes_ += bytes;
    }
    void release_response() {
      if (phase == Phase::Leaving) {
        server.ended_bytes_ -= response_bytes;
      } else {
        source->second.responses_bytes -= response_bytes;
        server.responses_bytes_ -= response_bytes;
      }
      response_bytes = 0;
    }
    void end() {
      if (phase != Phase::Leaving) {
        // Its task frees them when the write has failed.
        source->second.responses_bytes -= response_bytes;
        server.responses_bytes_ -= response_bytes;
        server.ended_bytes_ += response_bytes;
      }
      phase = Phase::Leaving;
      hold(0);  // Its task finishes soon.
      error_code ignored;
      stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
    }

    Impl& server;
    PlainStream& stream;
    const Sources::iterator source;
    const bool is_from_loopback;
    Phase phase = Phase::Idle;
    Instant since;  // When it entered its phase.
    std::uint64_t body_bytes = 0;
    std::uint64_t response_bytes = 0;
  };

  static io::Task<> accept_all(std::shared_ptr<Impl> self);
  static io::Task<> serve(std::shared_ptr<Impl> self, tcp::socket socket, asio::ip::address peer);
  static io::Task<> serve_tls(std::shared_ptr<Impl> self, tcp::socket socket,
                              asio::ip::address peer);
  template <class Stream>
  static io::Task<> serve_requests(std::shared_ptr<Impl> self, Stream& stream,
                                   Connection& connection, ClientSubject client);
  template <class Stream, class Parser>
  io::Task<error_code> read(Stream& stream, beast::flat_buffer& buffer, Parser& parser,
                            Connection& connection);
  template <class Stream>
  io::Task<error_code> write(Stream& stream, bhttp::response<bhttp::string_body>& message);
  // Whether a connection of `source` may be added: ends one that waits for its client if there are
  // too many. False: all that could make room wait for the handler.
  [[nodiscard]] bool make_room(const std::string& source);
  // What connections of one phase hold, of which there may be too much.
  struct Holding {
    Phase phase;
    std::uint64_t Connection::* bytes;
    std::uint64_t Source::* of_source;
    bool spares_asker;  // The connection that needs room is not ended for it.
  };
  // Of the connections that hold some, one of the source that holds the most: the one that has been
  // in its phase for the longest. `is_source_full`: only connections of the asker's source. Null:
  // there is none.
  [[nodiscard]] Connection* first_to_end(const Holding& holding, const Connection& asker,
                                         bool is_source_full);
  // Ends connections that are sending a body until all bodies fit. False: `reader` is among them.
  [[nodiscard]] bool make_room_for_bodies(const Connection& reader);
  // Counts a response of `bytes`, and ends connections that take theirs until all fit. False: there
  // is no room for it now.
  [[nodiscard]] bool make_room_for_response(Connection& writer, std::uint64_t bytes);

  io::Loop& loop_;
  const ServerOptions options_;
  const Handler handler_;
  const Log log_;
  tcp::acceptor acceptor_;
  std::shared_ptr<asio::ssl::context> tls_;
  std::uint16_t port_ = 0;
  bool stopping_ = false;
  std::set<Connection*> connections_;
  Sources sources_;                 // Sources of these connections.
  std::uint64_t bodies_bytes_ = 0;  // Bytes of all connections together.
  std::uint64_t responses_bytes_ = 0;
  std::uint64_t ended_bytes_ = 0;  // Of responses whose connections have been ended.
  io::Event changed_;              // Notified when connections_ changes.
};

Result<> Server::Impl::start() {
  if (options_.tls) HANGAR_TRY(set_certificate(*options_.tls));
  error_code error;
  const auto address = asio::ip::make_address(options_.address, error);
  if (error) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is not an address to listen on", options_.address));
  }
  const tcp::endpoint endpoint(address, options_.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return fail(ErrorKind::Unavailable, fmt::format("listen on {} port {}: {}", options_.address,
                                                    options_.port, error.message()));
  }
  port_ = acceptor_.local_endpoint(error).port();
  loop_.spawn(accept_all(shared_from_this()));
  return {};
}

Result<> Server::Impl::set_certificate(const ServerOptions::Tls& tls) {
  tls_ = HANGAR_TRY(make_tls(tls));
  return {};
}

io::Task<> Server::Impl::stop(Duration grace) {
  const auto self = shared_from_this();
  stopping_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  for (Connection* connection : connections_) {
    if (connection->phase == Phase::Idle) connection->stream.cancel();
  }
  const std::stop_source timeout;
  const auto timer = loop_.after(grace, [timeout] { timeout.request_stop(); });
  while (!connections_.empty()) {
    if (!co_await changed_.wait(timeout.get_token())) break;
  }
  close();
}

void Server::Impl::close() {
  stopping_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  for (Connection* connection : connections_)
    connection->end();
}

// Connections of the source that has the most go first, so that a client that opens all the
// connections keeps no one else out; of these, idle ones, then those whose request arrives slowly,
// then those that take the response slowly; of these, the oldest.
bool Server::Impl::make_room(const std::string& source) {
  const auto known = sources_.find(source);
  const bool is_source_full =
      known != sources_.end() && known->second.connections >= options_.source_connections_max;
  if (!is_source_full && connections_.size() < options_.connections_max) return true;
  const auto goes_before = [](const Connection& left, const Connection& right) {
    const std::size_t left_count = left.source->second.connections;
    const std::size_t right_count = right.source->second.connections;
    return std::tie(right_count, left.phase, left.since) <
           std::tie(left_count, right.phase, right.since);
  };
  Connection* first = nullptr;
  for (Connection* connection : connections_) {
    if (connection->phase == Phase::Handling || connection->phase == Phase::Leaving) continue;
    if (is_source_full && connection->source != known) continue;
    if (first == nullptr || goes_before(*connection, *first)) first = connection;
  }
  if (first == nullptr) return false;
  first->end();
  return true;
}

Server::Impl::Connection* Server::Impl::first_to_end(const Holding& holding,
                                                     const Connection& asker, bool is_source_full) {
  const auto goes_before = [&holding](const Connection& left, const Connection& right) {
    const std::uint64_t left_bytes = left.source->second.*holding.of_source;
    const std::uint64_t right_bytes = right.source->second.*holding.of_source;
    return std::tie(right_bytes, left.since) < std::tie(left_bytes, right.since);
  };
  Connection* first = nullptr;
  for (Connection* connection : connections_) {
    if (connection->phase != holding.phase || connection->*holding.bytes == 0) continue;
    if (holding.spares_asker && connection == &asker) continue;
    if (is_source_full && connection->source != asker.source) continue;
    if (first == nullptr || goes_before(*connection, *first)) first = connection;
  }
  return first;
}

bool Server::Impl::make_room_for_bodies(const Connection& reader) {
  constexpr Holding kBodies = {.phase = Phase::Reading,
                               .bytes = &Connection::body_bytes,
                               .of_source = &Source::bodies_bytes,
                               .spares_asker = false};
  const auto is_source_full = [&] {
    return reader.source->second.bodies_bytes > options_.source_bodies_bytes_max;
  };
  while (is_source_full() || bodies_bytes_ > options_.bodies_bytes_max) {
    Connection* const first = first_to_end(kBodies, reader, is_source_full());
    if (first == nullptr || first == &reader) return false;
    first->end();
  }
  return true;
}

bool Server::Impl::make_room_for_response(Connection& writer, std::uint64_t bytes) {
  constexpr Holding kResponses = {.phase = Phase::Writing,
                                  .bytes = &Connection::response_bytes,
                                  .of_source = &Source::responses_bytes,
                                  .spares_asker = true};
  if (bytes <= kUncountedResponseBytes || writer.phase == Phase::Leaving) return true;
  if (ended_bytes_ > options_.responses_bytes_max) return false;
  writer.hold_response(bytes);
  const auto is_source_full = [&] {
    return writer.source->second.responses_bytes > options_.source_responses_bytes_max;
  };
  while (is_source_full() || responses_bytes_ > options_.responses_bytes_max) {
    Connection* const first = first_to_end(kResponses, writer, is_source_full());
    if (first == nullptr) break;
    first->end();
  }
  return true;
}

io::Task<> Server::Impl::accept_all(std::shared_ptr<Impl> self) {
  while (!self->stopping_) {
    tcp::socket socket(self->loop_.asio().context);
    const error_code error = co_await run(
        self->loop_, [&](auto done) { self->acceptor_.async_accept(socket, std::move(done)); });
    if (self->stopping_ || error == asio::error::operation_aborted) co_return;
    if (error) {
      // Usually the process is out of descriptors. That passes, and retrying at once would waste
      // processor time.
      self->log_.warning("connection not accepted", {{"error", error.message()}});
      constexpr std::chrono::milliseconds kPause{100};
      HANGAR_ASSERT((co_await self->loop_.sleep(kPause, {})).has_value(), "nobody stops it");
      continue;
    }
    const std::optional<asio::ip::address> peer = peer_of(socket);
    if (!peer || !self->make_room(source_of(*peer))) continue;  // Closes it.
    // A large response is several TLS records, and so several writes. Without this option, the
    // kernel holds back the last one until the client has acknowledged the others, which clients
    // put off for up to 40 ms. A socket that refuses the option still works.
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    self->loop_.spawn(self->tls_ ? serve_tls(self, std::move(socket), *peer)
                                 : serve(self, std::move(socket), *peer));
  }
}

io::Task<> Server::Impl::serve(std::shared_ptr<Impl> self, tcp::socket socket,
                               asio::ip::address peer) {
  PlainStream stream(std::move(socket));
  Connection connection(*self, stream, peer);
  co_await serve_requests(self, stream, connection, {});
  error_code ignored;
  stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
}

io::Task<> Server::Impl::serve_tls(std::shared_ptr<Impl> self, tcp::socket socket,
                                   asio::ip::address peer) {
  const auto tls = self->tls_;  // Outlives the stream, also if it is replaced meanwhile.
  TlsStream stream(std::move(socket), *tls);
  PlainStream& plain = beast::get_lowest_layer(stream);
  Connection connection(*self, plain, peer);
  connection.enter(Phase::Reading);
  plain.expires_after(self->options_.read_max);
  const error_code error = co_await run(self->loop_, [&](auto done) {
    stream.async_handshake(asio::ssl::stream_base::server, std::move(done));
  });
  if (error) {
    self->log_.debug("tls handshake failed", {{"error", error.message()}});
  } else {
    co_await serve_requests(self, stream, connection, client_of(stream));
    plain.expires_after(self->options_.write_max);
    co_await run(self->loop_, [&](auto done) { stream.async_shutdown(std::move(done)); });
  }
}

template <class Stream>
io::Task<> Server::Impl::serve_requests(std::shared_ptr<Impl> self, Stream& stream,
                                        Connection& connection, ClientSubject client) {
  PlainStream& plain = beast::get_lowest_layer(stream);
  beast::flat_buffer buffer(limits::kServerHeaderBytesMax + 64 * limits::kKiB);
  while (!self->stopping_) {
    // The first byte of a request ends the idle phase; from then on one deadline holds for the
    // whole request.
    connection.enter(Phase::Idle);
    connection.hold(0);
    if (buffer.size() == 0) {
      plain.expires_after(self->options_.idle_max);
      std::size_t count = 0;
      const error_code error = co_await run(self->loop_, [&](auto done) {
        stream.async_read_some(
            buffer.prepare(limits::kKiB),
            [&count, done = std::move(done)](const error_code& e, std::size_t n) {
              count = n;
              done(e);
            });
      });
      if (error) co_return;
      buffer.commit(count);
    }
    connection.enter(Phase::Reading);

    bhttp::request_parser<bhttp::string_body> parser;
    parser.header_limit(static_cast<std::uint32_t>(limits::kServerHeaderBytesMax));
    parser.body_limit(self->options_.body_bytes_max);
    plain.expires_after(self->options_.read_max);
    const error_code error = co_await self->read(stream, buffer, parser, connection);
    if (error) {
      const Response refusal = refuse(error);
      if (refusal.status == 0) co_return;
      connection.enter(Phase::Writing);
      auto message = to_message(refusal, 11, false);
      message.keep_alive(false);
      co_await self->write(stream, message);
      co_return;
    }

    const unsigned version = parser.get().version();
    const bool keep_alive = parser.get().keep_alive();
    const bool is_head = parser.get().method() == bhttp::verb::head;
    plain.expires_never();
    connection.enter(Phase::Handling);
    ServerRequest request = to_request(parser.release());
    request.client_name = client.name;
    request.client_organizations = client.organizations;
    request.is_from_loopback = connection.is_from_loopback;
    request.source = connection.source->first;
    Response response = co_await self->handler_(std::move(request));
    connection.enter(Phase::Writing);
    if (!is_head && !self->make_room_for_response(connection, response.body.size())) {
      response = refuse(503, "too much is being received at once: try again");
    }
    auto message = to_message(std::move(response), version, is_head);
    message.keep_alive(keep_alive && !self->stopping_);
    const error_code failed = co_await self->write(stream, message);
    connection.release_response();
    if (failed || !message.keep_alive()) co_return;
  }
}

// Reads one request piece by piece, so that its body is counted as it arrives: an announced
// Content-Length reserves nothing.
template <class Stream, class Parser>
io::Task<error_code> Server::Impl::read(Stream& stream, beast::flat_buffer& buffer, Parser& parser,
                                        Connection& connection) {
  parser.eager(true);
  while (!parser.is_done()) {
    const error_code error = co_await run(
        loop_, [&](auto done) { bhttp::async_read_some(stream, buffer, parser, std::move(done)); });
    if (error) co_return error;
    if (connection.phase == Phase::Leaving) co_return asio::error::operation_aborted;
    connection.hold(parser.get().body().size());
    if (!make_room_for_bodies(connection)) co_return asio::error::no_buffer_space;
  }
  co_return error_code();
}

template <class Stream>
io::Task<error_code> Server::Impl::write(Stream& stream,
                                         bhttp::response<bhttp::string_body>& message) {
  beast::get_lowest_layer(stream).expires_after(options_.write_max);
  // Head and body in one buffer: of two buffers that exceed one TLS record together, Beast writes
  // only the first.
  const std::string text = head_of(message) + message.body();
  // Otherwise it would be in memory twice for as long as the client takes.
  std::string().swap(message.body());
  co_return co_await run(
      loop_, [&](auto done) { asio::async_write(stream, asio::buffer(text), std::move(done)); });
}

Server::Server(io::Loop& loop, ServerOptions options, Handler handler, Log log)
    : impl_(std::make_shared<Impl>(loop, std::move(options), std::move(handler), std::move(log))) {}

Server::~Server() {
  impl_->close();
}

Result<> Server::start() {
  return impl_->start();
}

Result<> Server::set_certificate(const ServerOptions::Tls& tls) {
  return impl_->set_certificate(tls);
}

io::Task<> Server::stop(Duration grace) {
  return impl_->stop(grace);
}

std::uint16_t Server::port() const {
  return impl_->port();
}

std::size_t Server::connection_count() const {
  return impl_->connection_count();
}

Result<> check_certificate(const ServerOptions::Tls& tls) {
  HANGAR_TRY(make_tls(tls));
  return {};
}

Result<> listen_with(std::unique_ptr<Server>& server, io::Loop& loop, std::string_view address,
                     ServerOptions options, Server::Handler handler, Log log) {
  HANGAR_ASSERT(options.tls.has_value(), "there is a certificate to listen with");
  if (server) return server->set_certificate(*options.tls);
  ListenAddress where = HANGAR_TRY(parse_listen_address(address));
  options.address = std::move(where.address);
  options.port = where.port;
  auto made =
      std::make_unique<Server>(loop, std::move(options), std::move(handler), std::move(log));
  HANGAR_TRY(made->start());
  server = std::move(made);
  return {};
}

}  // namespace hangar::http
