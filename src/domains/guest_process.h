// The host's end of one guest process: its socket, its messages, and the rules for them.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/slices.h"
#include "guest_protocol/conversation.h"
#include "guest_protocol/frames.h"
#include "guest_protocol/messages.h"
#include "io/descriptor.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::domains {

// Messages are handled in turns that are fair between tenants, and the tenant pays for the time.
// The host stops reading from a process that does not read its answers; the process then finally
// counts as silent. It does not count as silent while the host owes it a turn. Loop thread.
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

  // The tenant's messages take their turns at `slices`, which outlives this object. Takes ownership
  // of `socket`.
  GuestProcess(io::Loop& loop, budget::Slices& slices, budget::Tenant tenant, int socket,
               guest_protocol::Conversation::Patience patience, Events events);
  GuestProcess(const GuestProcess&) = delete;
  GuestProcess& operator=(const GuestProcess&) = delete;
  ~GuestProcess();

  // Sends the native code in `descriptor` as module number `module`. Takes ownership
  // of `descriptor`.
  void load_module(std::uint64_t module, int descriptor);
  void drop_module(std::uint64_t module);
  // `order`: the one that begins the run.
  void begin(std::uint64_t run, const guest_protocol::ToGuest& order,
             const guest_protocol::Conversation::Terms& terms);
  void cancel(std::uint64_t run);
  void answer(const guest_protocol::Found& answer);
  void answer(const guest_protocol::MemoryAnswer& answer);
  void answer(const guest_protocol::Piece& answer);
  void answer(const guest_protocol::Kept& answer);
  // Like load_module(), for the code and, if the module has one, the image.
  void load(const guest_protocol::LoadSleepable& order, std::vector<io::Descriptor> descriptors);
  // Sends an order about a long-lived guest that starts no run.
  void tell(const guest_protocol::ToGuest& order, std::vector<io::Descriptor> descriptors = {});
  // The same for an order that will be repeated: not sent while earlier ones wait to be read.
  // Otherwise a process that reads nothing would be owed ever more of them.
  void remind(const guest_protocol::ToGuest& order);

  // No more messages are sent or received.
  void close();

 private:
  struct Unsent {
    std::string bytes;
    std::size_t sent_bytes = 0;
    std::vector<io::Descriptor> descriptors = {};  // Sent with the first byte.
    bool is_answer = false;
    std::optional<std::uint64_t> begun = {};  // The run that this order begins.
  };

  void send(Unsent unsent);
  void flush();
  void drop_unsent();
  // Reads bytes that have arrived.
  void receive();
  // Handles the complete messages among them, as many as fit into a turn.
  [[nodiscard]] io::Task<void> hear_in_turn(std::stop_token closed);
  void hear(budget::Slices::Job& turn);
  [[nodiscard]] Result<> read_frames(budget::Slices::Job& turn);
  // Whether the message is about a run whose order the process cannot have read.
  [[nodiscard]] bool is_ahead(const guest_protocol::FromGuest& message) const;
  // Whether to read from the process now: only while it reads its own answers.
  [[nodiscard]] bool takes_answers() const;
  // Starts or stops reading from the process, and takes a turn if messages wait for one.
  void pace();
  void look();
  // Judges the process once the messages that have arrived are handled.
  void judge();
  void look_later();
  void end(std::optional<Error> breach);

  io::Loop& loop_;
  budget::Slices& slices_;
  const budget::Tenant tenant_;
  int socket_;  // Negative: closed.
  const Events events_;
  guest_protocol::Conversation talk_;
  guest_protocol::Frames frames_;
  std::deque<Unsent> unsent_;
  std::size_t unsent_answer_bytes_ = 0;
  std::set<std::uint64_t> unsent_runs_;  // The runs that orders in `unsent_` begin.
  bool has_rest_ = false;                // Some received bytes are not handled yet.
  bool waits_for_turn_ = false;          // To handle them.
  bool is_look_due_ = false;             // judge() waits for them.
  std::stop_source closed_;
  std::unique_ptr<io::Loop::Watch> read_watch_;   // Set while it is read from.
  std::unique_ptr<io::Loop::Watch> write_watch_;  // Set while messages are unsent.
  io::Loop::Timer look_timer_;
  std::optional<Instant> look_at_;  // When the timer is due.
};

}  // namespace hangar::domains
