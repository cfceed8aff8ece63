// The unanswered calls of one guest. A plain machine: the guest's host functions add calls on a
// worker, the loop takes them between turns.
#pragma once

#include "abi/kube_runtime/messages.h"
#include "base/packing.h"
#include "base/result.h"
#include "base/slots.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

namespace hangar::abi::kube_runtime {

class PendingCalls {
 public:
  // Returns the id under which the guest will get its answer; ids are never reused. LimitExceeded
  // when the guest makes more calls than base/limits.h allows.
  [[nodiscard]] Result<std::uint64_t> add_request(HttpRequest request, bool is_stream);
  [[nodiscard]] Result<std::uint64_t> add_delay(std::uint64_t milliseconds);
  // Registers a listener for requests of this kind. Returns the id under which the guest gets them,
  // the same for each call. A listener for webhooks keeps a guest alive that does nothing else; one
  // for metrics does not: is_empty() does not count it.
  [[nodiscard]] std::uint64_t listen(Listener listener);
  [[nodiscard]] std::optional<std::uint64_t> find(Listener listener) const;
  // Returns the id under which the guest answers one more request. Unavailable when it has not
  // answered kGuestInboundMax earlier ones.
  [[nodiscard]] Result<std::uint64_t> add_inbound();
  // The guest's answer. Ignored when there is no such request, or when it was answered already. If
  // the answers of one turn exceed kGuestInboundAnswersBytesMax, one with status 507 replaces it.
  void answer_inbound(InboundAnswer answer);
  // The answer is no longer needed: it will be ignored.
  void forget_inbound(std::uint64_t id);
  // The guest no longer waits for the call. Ids that it does not wait for are ignored.
  void cancel(std::uint64_t id);

  // The calls that may start now, in the order in which they were made. Requests beyond
  // kGuestRequestsMax wait until one in flight has finished.
  [[nodiscard]] std::vector<HttpCall> take_calls();
  [[nodiscard]] std::vector<Delay> take_delays();
  [[nodiscard]] std::vector<InboundAnswer> take_answers();
  // Ids of calls that were taken and cancelled afterwards.
  [[nodiscard]] std::vector<std::uint64_t> take_cancelled();

  // True when the guest waits for `id`: it made the call, and the call has not finished; or it is
  // the id of a listener.
  [[nodiscard]] bool has(std::uint64_t id) const;
  // Ids from here on have not been given out yet.
  [[nodiscard]] std::uint64_t next_id() const { return next_id_; }
  [[nodiscard]] bool is_empty() const {
    return open_count() == 0 && !find(Listener::Webhooks).has_value();
  }
  void finish(std::uint64_t id);
  // The last piece of its answer is there, and the guest gets it in this turn: the host need not
  // know that it is cancelled until then.
  void expect_finish(std::uint64_t id);

  // For a guest that is to continue in another process: after a turn, when calls, delays and
  // answers have been taken.
  void pack(Packer& into) const;
  // Restores what pack() wrote.
  void unpack(Unpacker& from);

  // Releases unused memory, before a time in which the guest makes no calls.
  void shrink();

 private:
  // Inbound: a request into the guest, which it has not answered.
  enum class Kind : std::uint8_t {
    Waiting,
    Request,
    Delay,
    Finished,
    MetricsListener,
    WebhooksListener,
    Inbound
  };
  struct Call {
    std::uint64_t id = 0;
    Kind kind = Kind::Waiting;
    bool is_finishing = false;  // Within a turn.
  };
  using Calls = std::vector<Call, slots::Allocator<Call>>;
  // Calls that have not been taken yet.
  struct Untaken {
    std::list<HttpCall> requests;
    std::uint64_t requests_bytes = 0;
    std::vector<kube_runtime::Delay> delays;
    std::vector<std::uint64_t> cancelled;
    std::vector<InboundAnswer> answers;
    std::uint64_t answers_bytes = 0;
  };

  [[nodiscard]] static constexpr Kind kind_of(Listener listener);
  // Without listeners and requests into the guest, for which the guest does not wait.
  [[nodiscard]] std::size_t open_count() const;
  [[nodiscard]] std::size_t index_of(std::uint64_t id) const;
  [[nodiscard]] Untaken& untaken();
  void forget_finished();
  void forget_untaken();

  // Thousands of these sleep in one host: the members are small, and parts that are usually absent
  // take no memory.
  std::uint64_t next_id_ = 0;
  // Sorted by id, which is the order of adding. Finished calls stay until they are the majority, so
  // that erasing moves each call a few times and not once for every other call.
  Calls calls_;
  std::uint32_t requests_ = 0;  // In flight.
  std::uint32_t delays_ = 0;
  std::unique_ptr<Untaken> untaken_;  // Null: there are none.
};

}  // namespace hangar::abi::kube_runtime
