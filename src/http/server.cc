#include "http/server.h"

#include "base/log.h"
#include "base/result.h"
#include "http/client.h"
#include "io/asio.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::http {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;

Result<tcp::endpoint> parse_endpoint(std::string_view text) {
  const auto invalid = [text] {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is no address to listen at: write for example 127.0.0.1:8080 "
                            "or :8080",
                            text));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return invalid();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (problem != std::errc() || end != digits.data() + digits.size()) return invalid();
  if (host.empty()) return tcp::endpoint(tcp::v4(), port);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  error_code error;
  const auto address = asio::ip::make_address(std::string(host), error);
  if (error) return invalid();
  return tcp::endpoint(address, port);
}

}  // namespace

struct Server::State : std::enable_shared_from_this<State> {
  State(io::Loop& loop_in, Handler handler_in, Options options_in, Log log_in)
      : loop(loop_in),
        handler(std::move(handler_in)),
        options(options_in),
        log(std::move(log_in)),
        acceptor(loop.asio().context),
        changed(loop) {}

  void accept();

  io::Loop& loop;
  const Handler handler;
  const Options options;
  const Log log;
  tcp::acceptor acceptor;
  std::size_t connections = 0;
  std::size_t answering = 0;
  bool is_accepting = false;
  bool is_ending = false;
  io::Event changed;  // A request was answered.
};

namespace {

// One client, one request after the other. Keeps itself alive through Asio's handlers.
template <class State>
class Connection : public std::enable_shared_from_this<Connection<State>> {
 public:
  Connection(std::shared_ptr<State> server, tcp::socket socket)
      : server_(std::move(server)), stream_(std::move(socket)) {
    ++server_->connections;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    --server_->connections;
    if (!server_->is_ending) server_->accept();
  }

  void read() {
    parser_.emplace();
    parser_->body_limit(server_->options.body_bytes_max);
    stream_.expires_after(server_->options.idle_timeout);
    beast::http::async_read(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](
                                const error_code& error, std::size_t) { self->on_read(error); });
  }

 private:
  void on_read(const error_code& error) {
    if (error == beast::http::error::end_of_stream) return;
    if (error == beast::http::error::body_limit) return write({.status = 413}, false);
    if (error == beast::http::error::header_limit) return write({.status = 431}, false);
    if (error) {
      // Of the client's own making, when it is about the bytes; otherwise it is gone.
      const bool is_about_bytes =
          error.category() ==
          beast::http::make_error_code(beast::http::error::bad_method).category();
      if (is_about_bytes) write({.status = 400}, false);
      return;
    }
    server_->loop.spawn(answer(this->shared_from_this()));
  }

  static io::Task<void> answer(std::shared_ptr<Connection> self) {
    auto& message = self->parser_->get();
    const std::string_view target(message.target().data(), message.target().size());
    const std::size_t question = std::min(target.find('?'), target.size());
    ServerRequest request{
        .method = std::string(message.method_string()),
        .path = std::string(target.substr(0, question)),
        .query = std::string(target.substr(std::min(question + 1, target.size()))),
        .body = std::move(message.body())};
    for (const auto& field : message) {
      request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    const bool keep_alive = message.keep_alive();
    self->stream_.expires_never();
    ++self->server_->answering;
    ServerResponse response = co_await self->server_->handler(std::move(request));
    --self->server_->answering;
    self->server_->changed.notify_all();
    self->write(std::move(response), keep_alive && !self->server_->is_ending);
  }

  void write(ServerResponse response, bool keep_alive) {
    response_ = {};
    response_.version(11);
    response_.result(static_cast<unsigned>(response.status));
    response_.set(beast::http::field::content_type, response.content_type);
    response_.keep_alive(keep_alive);
    response_.body() = std::move(response.body);
    const bool is_head =
        parser_->is_header_done() && parser_->get().method() == beast::http::verb::head;
    response_.prepare_payload();
    if (is_head) response_.body().clear();
    stream_.expires_after(server_->options.idle_timeout);
    serializer_.emplace(response_);
    if (is_head) serializer_->split(true);
    const auto done = [self = this->shared_from_this(), keep_alive](const error_code& error,
                                                                    std::size_t) {
      if (error) return;
      if (keep_alive) return self->read();
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    };
    if (is_head) {
      beast::http::async_write_header(stream_, *serializer_, done);
    } else {
      beast::http::async_write(stream_, *serializer_, done);
    }
  }

  std::shared_ptr<State> server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{64 * 1024};  // Bounds what one request's header may take.
  std::optional<beast::http::request_parser<beast::http::string_body>> parser_;
  beast::http::response<beast::http::string_body> response_;
  std::optional<beast::http::response_serializer<beast::http::string_body>> serializer_;
};

}  // namespace

void Server::State::accept() {
  if (is_accepting || is_ending || connections >= options.connections_max) return;
  is_accepting = true;
  acceptor.async_accept([self = shared_from_this()](const error_code& error, tcp::socket socket) {
    self->is_accepting = false;
    if (self->is_ending || error == asio::error::operation_aborted) return;
    if (error) {
      // Out of descriptors, or the client left: neither is a reason to stop listening.
      self->log.warning("a connection could not be taken", {{"error", error.message()}});
    } else {
      std::make_shared<Connection<State>>(self, std::move(socket))->read();
    }
    self->accept();
  });
}

Server::Server(io::Loop& loop, Handler handler, Options options, Log log)
    : state_(std::make_shared<State>(loop, std::move(handler), options, std::move(log))) {}

Server::~Server() {
  state_->is_ending = true;
  error_code ignored;
  state_->acceptor.close(ignored);
}

Result<> Server::listen(std::string_view address) {
  const tcp::endpoint endpoint = HANGAR_TRY(parse_endpoint(address));
  error_code error;
  tcp::acceptor& acceptor = state_->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    const ErrorKind kind =
        error == asio::error::access_denied ? ErrorKind::Denied : ErrorKind::Unavailable;
    return fail(kind, fmt::format("listen at {}: {}", address, error.message()));
  }
  state_->accept();
  return {};
}

std::uint16_t Server::port() const {
  error_code error;
  const tcp::endpoint endpoint = state_->acceptor.local_endpoint(error);
  return error ? std::uint16_t{0} : endpoint.port();
}

io::Task<void> Server::stop() {
  const auto state = state_;
  state->is_ending = true;
  error_code ignored;
  state->acceptor.close(ignored);
  while (state->answering > 0) {
    if (!co_await state->changed.wait(std::stop_token())) break;
  }
}

}  // namespace hangar::http
