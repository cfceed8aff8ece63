#include "guest/server.h"

#include "abi/flight/command.h"
#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "abi/statemachine/program.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "guest/memory_grant.h"
#include "guest_protocol/frames.h"
#include "guest_protocol/messages.h"
#include "io/descriptor.h"
#include "io/event.h"
#include "io/local_message.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/limits.h"
#include "wasm/module.h"
#include "wasm/native_code.h"
#include "wasm/snapshot/sleepable_module.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hangar::guest {

namespace {

namespace flight = abi::flight;
namespace protocol = guest_protocol;
namespace statemachine = abi::statemachine;

static_assert(protocol::kOutputBytesMax >= limits::kFlightOutputBytesMax);
static_assert(protocol::kErrorOutputBytesMax > limits::kFlightErrorBytesMax,
              "what is kept of stderr, with its note, fits a message");

constexpr std::size_t kPieceBytes = 64 * limits::kKiB;
// The most pieces that one call of receive() reads.
constexpr int kPiecesMax = 16;

std::optional<Duration> timeout_of(std::int64_t nanoseconds) {
  if (nanoseconds < 0) return std::nullopt;
  return std::chrono::nanoseconds(nanoseconds);
}

// Not by sendmsg(), which could hand over descriptors: a process may not call it (walls.cc).
ssize_t send_bytes(int socket, std::string_view bytes) {
  ssize_t size = -1;
  do {
    size = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (size < 0 && errno == EINTR);
  return size;
}

protocol::EndRun end_of(std::uint64_t run, statemachine::Answer answer) {
  protocol::EndRun end{.run = run,
                       .stderr_bytes = std::move(answer.log),
                       .cpu_nanoseconds = static_cast<std::uint64_t>(answer.cost.cpu.count()),
                       .memory_bytes = answer.cost.memory_bytes};
  if (answer.text) {
    end.stdout_bytes = *std::move(answer.text);
  } else {
    end.is_error = true;
    end.kind = answer.text.error().kind();
    end.reason = protocol::cut_reason(answer.text.error().message());
  }
  return end;
}

protocol::EndRun end_of(std::uint64_t run, Result<flight::Output> output) {
  protocol::EndRun end{.run = run};
  if (!output) {
    end.is_error = true;
    end.kind = output.error().kind();
    end.reason = protocol::cut_reason(output.error().message());
    return end;
  }
  end.exit_code = output->exit_code;
  end.stdout_bytes = std::move(output->stdout_bytes);
  end.stderr_bytes = std::move(output->stderr_bytes);
  end.cpu_nanoseconds = static_cast<std::uint64_t>(output->cpu_time.count());
  end.memory_bytes = output->memory_bytes;
  return end;
}

}  // namespace

// A run in progress.
struct Server::Run {
  Run(Server& server, std::uint64_t number_in, std::uint64_t memory_bytes,
      std::uint64_t memory_bytes_max)
      : number(number_in),
        memory(memory_bytes, memory_bytes_max + wasm::kInstanceBytes,
               [&server, run = number_in](std::uint64_t bytes) {
                 server.loop_.post([&server, run, bytes] {
                   server.send(protocol::AskMemory{.run = run, .bytes = bytes});
                 });
               }) {}

  const std::uint64_t number;
  MemoryGrant memory;
  std::stop_source stop;
  std::optional<io::OneShot<flight::LookupAnswer>> question;  // Not answered yet.
};

class Server::RemoteLookups final : public flight::Lookups {
 public:
  RemoteLookups(Server& server, Run& run) : server_(server), run_(run) {}

  [[nodiscard]] io::Task<flight::LookupAnswer> lookup(flight::LookupRequest request) override {
    return ask(protocol::LookUp{.run = run_.number,
                                .name = std::move(request.name),
                                .namespace_ = std::move(request.namespace_),
                                .kind = std::move(request.kind),
                                .api_version = std::move(request.api_version)});
  }
  [[nodiscard]] io::Task<flight::LookupAnswer> rest_mapping(std::string group_or_api_version,
                                                            std::string kind) override {
    return ask(protocol::MapKind{.run = run_.number,
                                 .group_or_api_version = std::move(group_or_api_version),
                                 .kind = std::move(kind)});
  }

 private:
  io::Task<flight::LookupAnswer> ask(protocol::FromGuest question) {
    const io::OneShot<flight::LookupAnswer> answer(server_.loop_);
    run_.question = answer;
    server_.send(question);
    co_return co_await answer.wait();
  }

  Server& server_;
  Run& run_;
};

Server::Server(const flight::Runtime& runtime, const abi::kube_runtime::Runtime& guests_runtime,
               statemachine::Programs& programs, int socket, std::function<void(End)> on_end)
    : runtime_(runtime),
      loop_(runtime.engine().loop()),
      socket_(socket),
      on_end_(std::move(on_end)),
      frames_(protocol::kToGuestBytesMax),
      live_guests_(guests_runtime, [this](const protocol::FromGuest& message) { send(message); }),
      machines_(loop_, programs),
      read_watch_(loop_.watch(socket, io::Loop::Direction::Read, [this] { receive(); })) {}

Server::~Server() {
  for (const int descriptor : descriptors_)
    ::close(descriptor);
}

void Server::receive() {
  std::array<char, kPieceBytes> piece;
  for (int count = 0; count < kPiecesMax; ++count) {
    const ssize_t size = io::receive_local(socket_, piece, descriptors_, io::Waiting::No);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return on_end_(End::HostIsGone);
    frames_.add({piece.data(), static_cast<std::size_t>(size)});
    if (!read_frames()) return on_end_(End::OtherProtocol);
    if (static_cast<std::size_t>(size) < piece.size()) return;  // The socket is empty.
  }
}

Result<> Server::read_frames() {
  while (true) {
    const auto frame = HANGAR_TRY(frames_.next());
    if (!frame) return {};
    obey(HANGAR_TRY(protocol::decode_to_guest(frame->type, frame->payload)));
  }
}

void Server::obey(protocol::ToGuest message) {
  std::visit([this](auto& one) { obey_one(std::move(one)); }, message);
}

void Server::obey_one(const protocol::LoadModule& order) {
  io::Descriptor code = take_descriptor();
  if (!code.is_open()) return on_end_(End::OtherProtocol);
  modules_.insert_or_assign(order.module,
                            wasm::load_native_code(runtime_.engine(), std::move(code).release()));
}

void Server::obey_one(const protocol::LoadSleepable& order) {
  io::Descriptor code = take_descriptor();
  io::Descriptor image = order.obstacle.empty() ? take_descriptor() : io::Descriptor();
  if (!code.is_open() || image.is_open() != order.obstacle.empty()) {
    return on_end_(End::OtherProtocol);
  }
  live_guests_.load(order, std::move(code), std::move(image));
}

void Server::obey_one(protocol::ResumeGuest order) {
  io::Descriptor layer = order.layer.empty() ? io::Descriptor() : take_descriptor();
  if (layer.is_open() == order.layer.empty() ||
      !live_guests_.obey(std::move(order), std::move(layer))) {
    on_end_(End::OtherProtocol);
  }
}

io::Descriptor Server::take_descriptor() {
  if (descriptors_.empty()) return {};
  io::Descriptor first(descriptors_.front());
  descriptors_.erase(descriptors_.begin());
  return first;
}

void Server::obey_one(const protocol::DropModule& order) {
  modules_.erase(order.module);
  live_guests_.drop_module(order.module);
}

void Server::obey_one(protocol::BeginRun order) {
  const auto run =
      std::make_shared<Run>(*this, order.run, order.memory_bytes, order.memory_bytes_max);
  if (!runs_.emplace(order.run, run).second) return on_end_(End::OtherProtocol);
  loop_.spawn(this->run(run, std::move(order)));
}

io::Task<void> Server::run(std::shared_ptr<Run> run, protocol::BeginRun order) {
  const auto module = modules_.find(order.module);
  Result<flight::Output> output = fail(ErrorKind::Unavailable, "its module was not handed over");
  if (module != modules_.end() && !module->second) {
    output = std::unexpected(module->second.error());
  } else if (module != modules_.end()) {
    RemoteLookups lookups(*this, *run);
    const bool is_flight = order.contract == protocol::Contract::Flight;
    flight::Command command{
        .role = is_flight ? flight::Role::Flight : flight::Role::Converter,
        .arguments = std::move(order.arguments),
        .environment = std::move(order.environment),
        .stdin_bytes = std::move(order.stdin_bytes),
        .timeout = timeout_of(order.timeout_nanoseconds),
        .memory_bytes_max = order.memory_bytes_max,
        .consumer = {.tenant = budget::Tenant::of_namespace(std::move(order.tenant)),
                     .name = std::move(order.consumer)}};
    output = co_await flight::run_here(
        runtime_, *module->second, std::move(command), is_flight ? &lookups : nullptr,
        [run](std::uint64_t bytes) { return run->memory.reserve(bytes); }, run->stop.get_token());
  }
  runs_.erase(run->number);
  send(end_of(run->number, std::move(output)));
}

void Server::obey_one(protocol::LoadMachine order) {
  Result<std::shared_ptr<const wasm::SleepableModule>> sleepable = nullptr;
  Result<std::shared_ptr<const wasm::Module>> module = nullptr;
  if (order.shape == protocol::MachineShape::Command) {
    const auto found = modules_.find(order.module);
    if (found == modules_.end()) return on_end_(End::OtherProtocol);
    module = found->second;
  } else {
    const auto* const found = live_guests_.find_module(order.module);
    if (found == nullptr) return on_end_(End::OtherProtocol);
    sleepable = *found;
  }
  machines_.load(std::move(order), std::move(sleepable), std::move(module));
}

void Server::obey_one(const protocol::DropMachine& order) {
  machines_.drop(order.machine);
}

void Server::obey_one(protocol::AskMachine order) {
  const std::optional<std::uint64_t> memory_bytes_max = machines_.memory_bytes_max(order.machine);
  if (!memory_bytes_max) return on_end_(End::OtherProtocol);
  const auto run = std::make_shared<Run>(*this, order.run, order.memory_bytes, *memory_bytes_max);
  if (!runs_.emplace(order.run, run).second) return on_end_(End::OtherProtocol);
  loop_.spawn(ask(run, std::move(order)));
}

io::Task<void> Server::ask(std::shared_ptr<Run> run, protocol::AskMachine order) {
  statemachine::Answer answer = co_await machines_.ask(
      std::move(order), [run](std::uint64_t bytes) { return run->memory.reserve(bytes); },
      run->stop.get_token());
  runs_.erase(run->number);
  send(end_of(run->number, std::move(answer)));
}

void Server::obey_one(const protocol::ForgetBeginnings& /*order*/) {
  machines_.forget_beginnings();
}

void Server::obey_one(protocol::Found answer) {
  const auto run = runs_.find(answer.run);
  if (run == runs_.end() || !run->second->question) return on_end_(End::OtherProtocol);
  std::exchange(run->second->question, std::nullopt)
      ->set({.state = static_cast<flight::LookupState>(answer.state),
             .body = std::move(answer.body)});
}

void Server::obey_one(const protocol::MemoryAnswer& answer) {
  // The run may have ended meanwhile.
  const auto run = runs_.find(answer.run);
  if (run != runs_.end()) run->second->memory.answer(answer.refusal);
  live_guests_.answer(answer);
}

void Server::obey_one(const protocol::CancelRun& order) {
  const auto run = runs_.find(order.run);
  if (run != runs_.end()) run->second->stop.request_stop();
  live_guests_.cancel(order.run);
}

void Server::obey_one(const protocol::Ping& /*order*/) {
  send(protocol::Pong{});
}

void Server::send(const protocol::FromGuest& message) {
  unsent_.push_back(protocol::encode(message));
  if (write_watch_ == nullptr) flush();
}

void Server::flush() {
  while (!unsent_.empty()) {
    const std::string& first = unsent_.front();
    const ssize_t size = send_bytes(socket_, std::string_view(first).substr(sent_bytes_));
    if (size < 0 && errno == EAGAIN) {
      if (write_watch_ == nullptr) {
        write_watch_ = loop_.watch(socket_, io::Loop::Direction::Write, [this] { flush(); });
      }
      return;
    }
    if (size < 0) return on_end_(End::HostIsGone);
    sent_bytes_ += static_cast<std::size_t>(size);
    if (sent_bytes_ < first.size()) continue;
    unsent_.pop_front();
    sent_bytes_ = 0;
  }
  write_watch_.reset();
}

}  // namespace hangar::guest
