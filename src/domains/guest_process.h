// The host's end of one guest process: its socket, its messages, its rules.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "guest_protocol/conversation.h"
#include "guest_protocol/frames.h"
#include "guest_protocol/messages.h"
#include "io/loop.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hangar::domains {

// Who does not read its answers is not listened to, and found silent in the end. Loop thread.
class GuestProcess {
 public:
  struct Events {
    // Neither calls close() nor destroys this, but for on_over. The message keeps the rules.
    std::function<void(guest_protocol::FromGuest message)> on_message;
    // Nothing is heard of it any more: it has broken a rule (GuestFault), or closed its end
    // (nothing). Once.
    std::function<void(std::optional<Error> breach)> on_over;
  };

  // Takes `socket` over.
  GuestProcess(io::Loop& loop, int socket, guest_protocol::Conversation::Patience patience,
               Events events);
  GuestProcess(const GuestProcess&) = delete;
  GuestProcess& operator=(const GuestProcess&) = delete;
  ~GuestProcess();

  // The process's `module` from here on. Takes `descriptor` over.
  void load_module(std::uint64_t module, int descriptor);
  void drop_module(std::uint64_t module);
  void begin(const guest_protocol::BeginRun& order,
             const guest_protocol::Conversation::Terms& terms);
  void cancel(std::uint64_t run);
  void answer(const guest_protocol::Found& answer);
  void answer(const guest_protocol::MemoryAnswer& answer);

  // Nothing is heard or said any more.
  void close();

 private:
  struct Unsent {
    std::string bytes;
    std::size_t sent_bytes = 0;
    int descriptor = -1;  // Goes with the first byte.
    bool is_answer = false;
  };

  void send(Unsent unsent);
  void flush();
  void drop_unsent();
  // Bytes that have arrived.
  void receive();
  // Whole messages among them, as many as one turn of the loop has room for.
  void hear();
  [[nodiscard]] Result<> read_frames();
  // Whether it is to be heard now: it reads what it is answered.
  [[nodiscard]] bool takes_answers() const;
  // Goes on listening, or ceases to.
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
  bool has_rest_ = false;                         // Bytes have arrived that were not looked at.
  std::unique_ptr<io::Loop::Watch> read_watch_;   // While it is listened to.
  std::unique_ptr<io::Loop::Watch> write_watch_;  // While something is unsent.
  io::Loop::Timer rest_timer_;
  io::Loop::Timer look_timer_;
  std::optional<Instant> look_at_;  // When the timer is due.
};

}  // namespace hangar::domains
