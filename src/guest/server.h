// The server in a guest process: it reads messages, executes runs, and sends messages.
#pragma once

#include "abi/flight/command.h"
#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "abi/kube_runtime/local_guest.h"
#include "abi/statemachine/program.h"
#include "base/result.h"
#include "guest/live_guests.h"
#include "guest/machines.h"
#include "guest/memory_grant.h"
#include "guest_protocol/frames.h"
#include "guest_protocol/messages.h"
#include "io/descriptor.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/module.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::guest {

// Loop thread. It lives as long as the process.
class Server {
 public:
  // Calls `on_end` when the host has closed its end or sends an unknown message: the process then
  // has no more work. It may call `on_end` more than once; only the first call counts.
  enum class End : std::uint8_t { HostIsGone, OtherProtocol };
  Server(const abi::flight::Runtime& runtime, const abi::kube_runtime::Runtime& guests_runtime,
         abi::statemachine::Programs& programs, int socket, std::function<void(End)> on_end);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

 private:
  struct Run;
  class RemoteLookups;

  // Reads a bounded amount of the received bytes, so that other work gets its turn.
  void receive();
  [[nodiscard]] Result<> read_frames();
  void obey(guest_protocol::ToGuest message);
  void obey_one(const guest_protocol::LoadModule& order);
  void obey_one(const guest_protocol::DropModule& order);
  void obey_one(guest_protocol::BeginRun order);
  void obey_one(guest_protocol::Found answer);
  void obey_one(const guest_protocol::MemoryAnswer& answer);
  void obey_one(const guest_protocol::CancelRun& order);
  void obey_one(const guest_protocol::Ping& order);
  void obey_one(const guest_protocol::LoadSleepable& order);
  void obey_one(guest_protocol::LoadMachine order);
  void obey_one(const guest_protocol::DropMachine& order);
  void obey_one(guest_protocol::AskMachine order);
  void obey_one(const guest_protocol::ForgetBeginnings& order);
  void obey_one(guest_protocol::ResumeGuest order);
  // For all other orders, which are about long-lived guests.
  template <class Order>
  void obey_one(Order order) {
    if (!live_guests_.obey(std::move(order))) on_end_(End::OtherProtocol);
  }
  // The next received descriptor; not open if there is none.
  [[nodiscard]] io::Descriptor take_descriptor();

  [[nodiscard]] io::Task<void> run(std::shared_ptr<Run> run, guest_protocol::BeginRun order);
  [[nodiscard]] io::Task<void> ask(std::shared_ptr<Run> run, guest_protocol::AskMachine order);

  void send(const guest_protocol::FromGuest& message);
  void flush();

  const abi::flight::Runtime& runtime_;
  io::Loop& loop_;
  const int socket_;
  const std::function<void(End)> on_end_;

  guest_protocol::Frames frames_;
  std::vector<int> descriptors_;  // Received with messages that are not complete yet.
  std::map<std::uint64_t, Result<std::shared_ptr<const wasm::Module>>> modules_;
  std::map<std::uint64_t, std::shared_ptr<Run>> runs_;  // In progress.
  LiveGuests live_guests_;
  Machines machines_;
  std::deque<std::string> unsent_;  // A part of the first may have been sent.
  std::size_t sent_bytes_ = 0;      // How much of the first is sent.
  std::unique_ptr<io::Loop::Watch> read_watch_;
  std::unique_ptr<io::Loop::Watch> write_watch_;  // Null while no message is unsent.
};

}  // namespace hangar::guest
