// A guest process at work: messages in, runs, messages out.
#pragma once

#include "abi/flight/command.h"
#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "base/result.h"
#include "guest/memory_grant.h"
#include "guest_protocol/frames.h"
#include "guest_protocol/messages.h"
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
#include <vector>

namespace hangar::guest {

// Loop thread. Lasts as long as the process.
class Server {
 public:
  // `on_end` is called when the host is gone, or says what this does not know: the process has no
  // reason to be then. Called once at least, and the first time counts.
  enum class End : std::uint8_t { HostIsGone, OtherProtocol };
  Server(const abi::flight::Runtime& runtime, int socket, std::function<void(End)> on_end);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

 private:
  struct Run;
  class RemoteLookups;

  // What has arrived. At most so much at a time that other work has its turn.
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

  [[nodiscard]] io::Task<void> run(std::shared_ptr<Run> run, guest_protocol::BeginRun order);

  void send(const guest_protocol::FromGuest& message);
  void flush();

  const abi::flight::Runtime& runtime_;
  io::Loop& loop_;
  const int socket_;
  const std::function<void(End)> on_end_;

  guest_protocol::Frames frames_;
  std::vector<int> descriptors_;  // That came with messages which are not whole yet.
  std::map<std::uint64_t, Result<std::shared_ptr<const wasm::Module>>> modules_;
  std::map<std::uint64_t, std::shared_ptr<Run>> runs_;  // Under way.
  std::deque<std::string> unsent_;                      // Of the first a part may have gone.
  std::size_t sent_bytes_ = 0;                          // Of the first.
  std::unique_ptr<io::Loop::Watch> read_watch_;
  std::unique_ptr<io::Loop::Watch> write_watch_;  // While something is unsent.
};

}  // namespace hangar::guest
