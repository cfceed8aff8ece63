// The pending calls of a guest in another process, as the host knows them. A plain machine.
//
// The process may be under an attacker's control: the host believes nothing about a guest's calls
// except what follows from earlier turns and from the bounds of the contract.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/messages.h"
#include "base/result.h"
#include "base/slots.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hangar::abi::kube_runtime {

class KnownCalls {
 public:
  // The ids that the process reports in addition to the outcome of a turn.
  struct Ids {
    // Its listeners.
    std::optional<std::uint64_t> metrics;
    std::optional<std::uint64_t> webhooks = std::nullopt;
    std::uint64_t next = 0;  // From here on, ids are new.
  };
  // Records the guest's pending calls after a turn. GuestFault, with the reason, when no guest can
  // have made these calls: an id that is not new, more calls than the bounds allow, an answer to no
  // request. The process is then no longer to be believed.
  [[nodiscard]] Result<> take(const TurnOutcome& outcome, const Ids& ids);

  // As for PendingCalls.
  [[nodiscard]] bool has(std::uint64_t id) const;
  void finish(std::uint64_t id);
  [[nodiscard]] bool listens(Listener listener) const;

  // As Guest::hand_in. The process gives the next turn's requests the same ids.
  [[nodiscard]] Result<Guest::Inbound> hand_in(Listener listener, const HttpRequest& request);
  // How many requests hand_in() made since the last call.
  [[nodiscard]] std::uint32_t take_inbound_count();

  // As Guest::forget. The process has to be notified.
  void forget(std::uint64_t id);
  // The requests that were forgotten since the last call.
  [[nodiscard]] std::vector<std::uint64_t> take_forgotten();

  // The calls of a guest that is between turns, for the host that continues it.
  [[nodiscard]] CarriedCalls carry() const;
  // Restores what carry() has returned.
  [[nodiscard]] static KnownCalls restored(CarriedCalls carried);

  // Releases unused memory, before a time in which the guest makes no calls.
  void shrink();

 private:
  enum class Kind : std::uint8_t { Request, Delay, Inbound, Finished };
  struct Call {
    std::uint64_t id = 0;
    Kind kind = Kind::Request;
  };

  // Null when there is no such call, or it has finished.
  [[nodiscard]] const Call* find(std::uint64_t id) const;
  [[nodiscard]] Call* find(std::uint64_t id) {
    return const_cast<Call*>(std::as_const(*this).find(id));
  }
  [[nodiscard]] std::uint64_t count(Kind kind) const;
  [[nodiscard]] Result<> cancel(std::span<const std::uint64_t> ids);
  [[nodiscard]] Result<> answer(std::span<const InboundAnswer> answers);
  // `last`: the largest id of this kind so far.
  [[nodiscard]] Result<> add(std::uint64_t id, Kind kind, std::optional<std::uint64_t>& last);
  void finish(Call& call);
  void forget_finished();
  [[nodiscard]] std::optional<std::uint64_t> find(Listener listener) const;

  // Sorted by id. Finished ones stay until they are the majority, so that erasing moves each call a
  // few times and not once for every other call.
  std::vector<Call, slots::Allocator<Call>> calls_;
  std::uint32_t finished_ = 0;
  std::optional<std::uint64_t> metrics_;
  std::optional<std::uint64_t> webhooks_;
  std::optional<std::uint64_t> last_request_;
  std::optional<std::uint64_t> last_delay_;
  std::uint64_t next_id_ = 0;
  std::uint32_t inbound_count_ = 0;
  std::vector<std::uint64_t> forgotten_;
};

}  // namespace hangar::abi::kube_runtime
