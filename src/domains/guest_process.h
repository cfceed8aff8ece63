// The host's end of one guest process: its socket, its messages, and the rules for them.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "guest_protocol/conversation.h"
#include "guest_protocol/frames.h"
#include "guest_protocol/messages.h"
#include "io/descriptor.h"
#include "io/loop.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hangar::domains {

// The host stops reading from a process that does not read its answers; the process then finally
// counts as silent. Loop thread.
class GuestProcess {
 public:
  struct Events {
    // Receives each message that keeps the rules of the conversation. GuestFault: the message
    // breaks a rule that only its receiver knows. Must not call close() nor destroy this object;
    // only on_over may.
    std::function<Result<>(guest_protocol::FromGuest message)> on_message;
    // No more messages follow: the process has broken a rule (GuestFault), or closed its end
    // (std::nullopt). Called once.
    std::function<void(std::optional<Error> breach)> on_over;
  };

  // Takes ownership of `socket`.
  GuestProcess(io::Loop& loop, int socket, guest_protocol::Conversation::Patience patience,
               Events events);
  GuestProcess(const GuestProcess&) = delete;
  GuestProcess& operator=(const GuestProcess&) = delete;
  ~GuestProcess();

  // Sends the native code in `descriptor` as module number `module`. Takes ownership
  // of `descriptor`.
  void load_module(std::uint64_t module, int descriptor);
  void drop_module(std::uint64_t module);
  void begin(const guest_protocol::BeginRun& order,
             const guest_protocol::Conversation::Terms& terms);
  void cancel(std::uint64_t run);
  void answer(const guest_protocol::Found& answer);
  void answer(const guest_protocol::MemoryAnswer& answer);
  void answer(const guest_protocol::Piece& answer);
  void answer(const guest_protocol::Kept& answer);
  // Like load_module(), for the code and, if the module has one, the image.
  void load(const guest_protocol::LoadSleepable& order, std::vector<io::Descriptor> descriptors);
  // Sends an order about a long-lived guest that starts no run.
  void tell(const guest_protocol::ToGuest& order);
  // BeginTurn or SleepGuest.
  void begin(std::uint64_t run, const guest_protocol::ToGuest& order,
             const guest_protocol::Conversation::Terms& terms);

  // No more messages are sent or received.
  void close();

 private:
  struct Unsent {
    std::string bytes;
    std::size_t sent_bytes = 0;
    std::vector<io::Descriptor> descriptors = {};  // Sent with the first byte.
    bool is_answer = false;
  };

  void send(Unsent unsent);
  void flush();
  void drop_unsent();
  // Reads bytes that have arrived.
  void receive();
  // Handles the complete messages among them, a bounded amount for each turn of the loop.
  void hear();
  [[nodiscard]] Result<> read_frames();
  // Whether to read from the process now: only while it reads its own answers.
  [[nodiscard]] bool takes_answers() const;
  // Starts or stops reading from the process.
  void pace();
  void look();
  void look_later();
  void end(std::optional<Error> breach);

  io::Loop& loop_;
  int socket_;  // Negative: closed.
  const Events events_;
  guest_protocol::Conversation talk_;
  guest_protocol::Frames frames_;
  std::deque<Unsent> unsent_;
  std::size_t unsent_answer_bytes_ = 0;
  bool has_rest_ = false;                         // Some received bytes are not handled yet.
  std::unique_ptr<io::Loop::Watch> read_watch_;   // Set while it is read from.
  std::unique_ptr<io::Loop::Watch> write_watch_;  // Set while messages are unsent.
  io::Loop::Timer rest_timer_;
  io::Loop::Timer look_timer_;
  std::optional<Instant> look_at_;  // When the timer is due.
};

}  // namespace hangar::domains
