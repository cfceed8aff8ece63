// The long-lived guests of a guest process: carries out the host's orders and returns the results
// of turns.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/local_guest.h"
#include "base/result.h"
#include "guest/carried_snapshots.h"
#include "guest_protocol/messages.h"
#include "io/descriptor.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/snapshot/sleepable_module.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace hangar::guest {

// Loop thread. It lives as long as the process.
class LiveGuests {
 public:
  // `send` sends a message to the host. `runtime` outlives this.
  LiveGuests(const abi::kube_runtime::Runtime& runtime,
             std::function<void(const guest_protocol::FromGuest&)> send);
  LiveGuests(const LiveGuests&) = delete;
  LiveGuests& operator=(const LiveGuests&) = delete;
  ~LiveGuests();

  void load(const guest_protocol::LoadSleepable& order, io::Descriptor code, io::Descriptor image);
  void drop_module(std::uint64_t module) { modules_.erase(module); }
  // Null if the module is unknown.
  [[nodiscard]] const Result<std::shared_ptr<const wasm::SleepableModule>>* find_module(
      std::uint64_t module) const {
    const auto found = modules_.find(module);
    return found == modules_.end() ? nullptr : &found->second;
  }

  // False for an invalid order: about a guest that does not exist, or that already has a run.
  [[nodiscard]] bool obey(guest_protocol::MakeGuest order);
  // `layer`: open if the order names one.
  [[nodiscard]] bool obey(guest_protocol::ResumeGuest order, io::Descriptor layer);
  [[nodiscard]] bool obey(guest_protocol::HandWakeup order);
  [[nodiscard]] bool obey(const guest_protocol::BeginTurn& order);
  [[nodiscard]] bool obey(const guest_protocol::SleepGuest& order);
  [[nodiscard]] bool obey(const guest_protocol::DropGuest& order);
  [[nodiscard]] bool obey(guest_protocol::Piece answer);
  [[nodiscard]] bool obey(guest_protocol::Kept answer);

  // The run may have ended meanwhile, or may not belong to these guests.
  void answer(const guest_protocol::MemoryAnswer& answer);
  void cancel(std::uint64_t run);

 private:
  struct Live;

  [[nodiscard]] bool add(std::shared_ptr<Live> live);
  // The guest with this run; null: none.
  [[nodiscard]] std::shared_ptr<Live> with_run(std::uint64_t run) const;
  [[nodiscard]] io::Task<void> take_turn(std::shared_ptr<Live> live,
                                         guest_protocol::BeginTurn order);
  [[nodiscard]] io::Task<abi::kube_runtime::TurnOutcome> turn_of(
      Live& live, const guest_protocol::BeginTurn& order);
  // Creates a guest from the host's order or, if it sleeps, from the pieces of its snapshot.
  [[nodiscard]] io::Task<Result<>> bring_in(Live& live);
  [[nodiscard]] io::Task<std::string> fetch(Live& live, std::uint32_t size_bytes);
  [[nodiscard]] io::Task<void> put_to_sleep(std::shared_ptr<Live> live, std::uint64_t run);
  [[nodiscard]] io::Task<Result<Duration>> hand_over(Live& live);
  // A new layer, and the pages that the guest has written.
  [[nodiscard]] io::Task<Result<>> hand_over(Live& live, const CarriedLayer& layer);
  // Asks the host to keep something; Unavailable if it cannot.
  [[nodiscard]] io::Task<Result<>> ask_to_keep(Live& live, guest_protocol::FromGuest question);
  void report(const Live& live, abi::kube_runtime::TurnOutcome outcome);

  const abi::kube_runtime::Runtime& runtime_;
  io::Loop& loop_;
  const std::function<void(const guest_protocol::FromGuest&)> send_;
  std::map<std::uint64_t, Result<std::shared_ptr<const wasm::SleepableModule>>> modules_;
  std::map<std::uint64_t, std::shared_ptr<Live>> guests_;
  std::map<std::uint64_t, std::shared_ptr<Live>> runs_;  // In progress.
};

}  // namespace hangar::guest
