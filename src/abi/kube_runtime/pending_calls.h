// What one guest has asked for and not been answered yet. A plain machine: the guest's host
// functions put calls in on a worker, the loop takes them out between turns.
#pragma once

#include "abi/kube_runtime/messages.h"
#include "base/result.h"
#include "base/slots.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

namespace hangar::abi::kube_runtime {

class PendingCalls {
 public:
  // The id under which the guest is answered: never given twice. LimitExceeded when the guest asks
  // for more than base/limits.h lets it.
  [[nodiscard]] Result<std::uint64_t> add_request(HttpRequest request, bool is_stream);
  [[nodiscard]] Result<std::uint64_t> add_delay(std::uint64_t milliseconds);
  // The guest waits for it no more. What it does not wait for is left alone.
  void cancel(std::uint64_t id);

  // What may begin now, in the order that it was asked for. Requests beyond kGuestRequestsMax wait
  // until one under way has finished.
  [[nodiscard]] std::vector<HttpCall> take_calls();
  [[nodiscard]] std::vector<Delay> take_delays();
  // Of those that were taken before, and have been cancelled since.
  [[nodiscard]] std::vector<std::uint64_t> take_cancelled();

  // Whether the guest waits for `id`: it was asked for, and has not finished.
  [[nodiscard]] bool has(std::uint64_t id) const;
  [[nodiscard]] bool is_empty() const { return open_count() == 0; }
  void finish(std::uint64_t id);

  // To the memory that it needs, for a while in which nothing is asked for.
  void shrink();

 private:
  enum class Kind : std::uint8_t { Waiting, Request, Delay, Finished };
  struct Call {
    std::uint64_t id = 0;
    Kind kind = Kind::Waiting;
  };
  using Calls = std::vector<Call, slots::Allocator<Call>>;
  // What has not been taken yet.
  struct Untaken {
    std::list<HttpCall> requests;
    std::uint64_t requests_bytes = 0;
    std::vector<kube_runtime::Delay> delays;
    std::vector<std::uint64_t> cancelled;
  };

  [[nodiscard]] std::size_t open_count() const;
  [[nodiscard]] std::size_t index_of(std::uint64_t id) const;
  [[nodiscard]] Untaken& untaken();
  void forget_finished();
  void forget_untaken();

  // Thousands of these sleep in one host: little, and nothing for what is mostly not there.
  std::uint64_t next_id_ = 0;
  // By id, which is the order in which they are added. Those that have finished stay until they
  // are the most, so that each is moved a few times and not once for every other.
  Calls calls_;
  std::uint32_t requests_ = 0;  // Under way.
  std::uint32_t delays_ = 0;
  std::unique_ptr<Untaken> untaken_;  // Null: none.
};

}  // namespace hangar::abi::kube_runtime
