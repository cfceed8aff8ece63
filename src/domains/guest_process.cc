#include "domains/guest_process.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/slices.h"
#include "guest_protocol/conversation.h"
#include "guest_protocol/frames.h"
#include "guest_protocol/messages.h"
#include "io/descriptor.h"
#include "io/local_message.h"
#include "io/loop.h"
#include "io/task.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::domains {

namespace {

namespace protocol = guest_protocol;

// What is read at a time.
constexpr std::size_t kPieceBytes = 64 * limits::kKiB;
// The cost of a message in addition to its bytes: 32 fit into one slice. A message may be a
// question that the cache answers at once, with an object of a MiB.
constexpr std::size_t kMessageCost = budget::kSliceBytes / 32;

// Answers that the process has not read. A process that asks and never reads would fill the host's
// memory; a correct one reads at once.
constexpr std::size_t kUnsentAnswerBytesMax = limits::kMiB;

}  // namespace

GuestProcess::GuestProcess(io::Loop& loop, budget::Slices& slices, budget::Tenant tenant,
                           int socket, protocol::Conversation::Patience patience, Events events)
    : loop_(loop),
      slices_(slices),
      tenant_(std::move(tenant)),
      socket_(socket),
      events_(std::move(events)),
      talk_(patience),
      frames_(protocol::kFromGuestBytesMax),
      read_watch_(loop.watch(socket, io::Loop::Direction::Read, [this] { receive(); })) {}

GuestProcess::~GuestProcess() {
  close();
}

void GuestProcess::load_module(std::uint64_t module, int descriptor) {
  Unsent order{.bytes = protocol::encode(protocol::LoadModule{.module = module})};
  order.descriptors.emplace_back(descriptor);
  send(std::move(order));
}

void GuestProcess::drop_module(std::uint64_t module) {
  send({.bytes = protocol::encode(protocol::DropModule{.module = module})});
}

void GuestProcess::begin(std::uint64_t run, const protocol::ToGuest& order,
                         const protocol::Conversation::Terms& terms) {
  talk_.begin(run, terms, io::Loop::now());
  send({.bytes = protocol::encode(order), .begun = run});
  look_later();
}

void GuestProcess::cancel(std::uint64_t run) {
  talk_.cancel(run, io::Loop::now());
  send({.bytes = protocol::encode(protocol::CancelRun{.run = run})});
  look_later();
}

void GuestProcess::answer(const protocol::Found& answer) {
  if (socket_ < 0) return;
  talk_.answered(answer.run, io::Loop::now());
  send({.bytes = protocol::encode(answer), .is_answer = true});
}

void GuestProcess::answer(const protocol::MemoryAnswer& answer) {
  send({.bytes = protocol::encode(answer), .is_answer = true});
}

void GuestProcess::answer(const protocol::Piece& answer) {
  if (socket_ < 0) return;
  talk_.answered(answer.run, io::Loop::now());
  send({.bytes = protocol::encode(answer), .is_answer = true});
}

void GuestProcess::answer(const protocol::Kept& answer) {
  if (socket_ < 0) return;
  if (answer.refusal.empty()) {
    talk_.answered(answer.run, io::Loop::now());
  } else {
    talk_.refused(answer.run, io::Loop::now());
  }
  send({.bytes = protocol::encode(answer), .is_answer = true});
}

void GuestProcess::load(const protocol::LoadSleepable& order,
                        std::vector<io::Descriptor> descriptors) {
  send({.bytes = protocol::encode(order), .descriptors = std::move(descriptors)});
}

void GuestProcess::tell(const protocol::ToGuest& order, std::vector<io::Descriptor> descriptors) {
  send({.bytes = protocol::encode(order), .descriptors = std::move(descriptors)});
}

void GuestProcess::remind(const protocol::ToGuest& order) {
  if (unsent_.empty()) tell(order);
}

void GuestProcess::close() {
  closed_.request_stop();
  read_watch_.reset();
  look_timer_.cancel();
  drop_unsent();
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

void GuestProcess::drop_unsent() {
  unsent_.clear();
  unsent_answer_bytes_ = 0;
  unsent_runs_.clear();
  write_watch_.reset();
}

void GuestProcess::end(std::optional<Error> breach) {
  if (socket_ < 0) return;
  close();
  events_.on_over(std::move(breach));
}

void GuestProcess::send(Unsent unsent) {
  if (socket_ < 0) return;
  if (unsent.is_answer) unsent_answer_bytes_ += unsent.bytes.size();
  if (unsent.begun) unsent_runs_.insert(*unsent.begun);
  unsent_.push_back(std::move(unsent));
  if (write_watch_ == nullptr) flush();
  if (!takes_answers()) pace();
}

void GuestProcess::flush() {
  while (!unsent_.empty()) {
    Unsent& first = unsent_.front();
    std::vector<int> descriptors;
    for (const io::Descriptor& descriptor : first.descriptors)
      descriptors.push_back(descriptor.value());
    const ssize_t size = io::send_local(
        socket_, std::string_view(first.bytes).substr(first.sent_bytes), descriptors);
    // The process has closed its end: the reading side detects that after all earlier messages.
    if (size < 0 && errno != EAGAIN) return drop_unsent();
    if (size < 0) {
      if (write_watch_ == nullptr) {
        write_watch_ = loop_.watch(socket_, io::Loop::Direction::Write, [this] {
          flush();
          pace();
        });
      }
      return;
    }
    first.descriptors.clear();
    first.sent_bytes += static_cast<std::size_t>(size);
    if (first.sent_bytes < first.bytes.size()) continue;
    if (first.is_answer) unsent_answer_bytes_ -= first.bytes.size();
    if (first.begun) unsent_runs_.erase(*first.begun);
    unsent_.pop_front();
  }
  write_watch_.reset();
}

void GuestProcess::receive() {
  std::array<char, kPieceBytes> piece;
  ssize_t size = -1;
  do {
    // recv() without room for descriptors: the kernel closes any that a process would hand over.
    size = ::recv(socket_, piece.data(), piece.size(), MSG_DONTWAIT);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == EAGAIN) return;
  if (size <= 0) return end(std::nullopt);
  frames_.add({piece.data(), static_cast<std::size_t>(size)});
  has_rest_ = true;
  pace();
}

io::Task<void> GuestProcess::hear_in_turn(std::stop_token closed) {
  waits_for_turn_ = true;
  budget::Slices::Job turn = slices_.begin(tenant_);
  const Result<> has_come = co_await turn.turn(closed);
  // Once closed, this object may be gone.
  if (!has_come || closed.stop_requested()) co_return;
  waits_for_turn_ = false;
  hear(turn);
}

void GuestProcess::hear(budget::Slices::Job& turn) {
  if (Result<> read = read_frames(turn); !read) {
    // Invalid bytes are the guest's fault.
    return end(Error(ErrorKind::GuestFault, read.error().message()));
  }
  pace();
  if (is_look_due_) return judge();
  look_later();
}

Result<> GuestProcess::read_frames(budget::Slices::Job& turn) {
  const Instant now = io::Loop::now();
  // One message at least: others may have used up the slice while this turn was on its way.
  for (bool is_first = true; takes_answers() && (is_first || !turn.is_over()); is_first = false) {
    const auto frame = HANGAR_TRY(frames_.next());
    if (!frame) {
      has_rest_ = false;
      // Nobody looks whether the rest comes. An answer to a ping has no more than its header.
      if (talk_.under_way() == 0 && frames_.waiting_bytes() > protocol::kFrameHeaderBytes) {
        return fail(ErrorKind::GuestFault, "it began a message while no run was in progress");
      }
      return {};
    }
    protocol::FromGuest message =
        HANGAR_TRY(protocol::decode_from_guest(frame->type, frame->payload));
    // A process that guesses the numbers of its runs would end them without reading their orders,
    // which would fill the host's memory: they count for their tenant only until the run has ended.
    if (is_ahead(message)) {
      return fail(ErrorKind::GuestFault, "it sent a message about a run before it read the order");
    }
    // The host has asked for these.
    if (!std::holds_alternative<protocol::Pong>(message)) {
      turn.add(kMessageCost + frame->payload.size());
    }
    HANGAR_TRY(talk_.hear(message, now));
    HANGAR_TRY(events_.on_message(std::move(message)));
  }
  return {};
}

bool GuestProcess::is_ahead(const protocol::FromGuest& message) const {
  if (unsent_runs_.empty()) return false;
  return std::visit(
      [this](const auto& one) {
        if constexpr (requires { one.run; }) {
          return unsent_runs_.contains(one.run);
        } else {
          return false;
        }
      },
      message);
}

bool GuestProcess::takes_answers() const {
  return unsent_answer_bytes_ <= kUnsentAnswerBytesMax;
}

void GuestProcess::pace() {
  if (socket_ < 0) return;
  if (has_rest_ && takes_answers() && !waits_for_turn_) {
    // Mostly the turn comes at once. Ending the watch first, and beginning one again, would cost
    // three system calls for each message.
    const std::stop_token closed = closed_.get_token();
    loop_.spawn(hear_in_turn(closed));
    if (closed.stop_requested()) return;  // This object may be gone.
  }
  if (has_rest_ || !takes_answers()) {
    read_watch_.reset();
  } else if (read_watch_ == nullptr) {
    read_watch_ = loop_.watch(socket_, io::Loop::Direction::Read, [this] { receive(); });
  }
}

void GuestProcess::look() {
  look_at_.reset();
  // Reads and writes before it judges: if the host itself was suspended, messages of the process
  // may wait in the socket.
  flush();
  is_look_due_ = true;
  if (has_rest_) {
    pace();
  } else if (takes_answers()) {
    receive();
  }
  if (is_look_due_) judge();
}

void GuestProcess::judge() {
  if (socket_ < 0 || (has_rest_ && takes_answers())) return;
  is_look_due_ = false;
  const auto move = talk_.look(io::Loop::now());
  if (!move) return end(move.error());
  if (*move == protocol::Conversation::Move::Ping) {
    send({.bytes = protocol::encode(protocol::Ping{})});
  }
  pace();
  look_later();
}

void GuestProcess::look_later() {
  const std::optional<Instant> at = talk_.look_at();
  if (socket_ < 0 || is_look_due_ || !at || *at == Instant::max()) return;
  // An early timer only causes one useless look; setting one for each message would cost more.
  if (look_at_ && *look_at_ <= *at) return;
  look_at_ = at;
  const Instant now = io::Loop::now();
  look_timer_ = loop_.after(std::max(Duration::zero(), Duration(*at - now)), [this] { look(); });
}

}  // namespace hangar::domains
