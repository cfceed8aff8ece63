// What one guest has asked for and not been answered yet. A plain machine: the guest's host
// functions put calls in on a worker, the loop takes them out between turns.
#pragma once

#include "abi/kube_runtime/messages.h"
#include "base/result.h"

#include <cstdint>
#include <list>
#include <map>
#include <vector>

namespace hangar::abi::kube_runtime {

class PendingCalls {
 public:
  // The id under which the guest is answered: never given twice. LimitExceeded when the guest asks
  // for more than base/limits.h lets it.
  [[nodiscard]] Result<std::uint64_t> add_request(HttpRequest request, bool is_stream);
  [[nodiscard]] Result<std::uint64_t> add_delay(std::uint64_t milliseconds);

  // What may begin now, in the order that it was asked for. Requests beyond kGuestRequestsMax wait
  // until one under way has finished.
  [[nodiscard]] std::vector<HttpCall> take_calls();
  [[nodiscard]] std::vector<Delay> take_delays();

  // Whether the guest waits for `id`: it was asked for, and has not finished.
  [[nodiscard]] bool has(std::uint64_t id) const { return open_.contains(id); }
  [[nodiscard]] bool is_empty() const { return open_.empty(); }
  void finish(std::uint64_t id);

 private:
  enum class Kind : std::uint8_t { Waiting, Request, Delay };

  // Thousands of these sleep in one host: containers that take nothing while they are empty.
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, Kind> open_;
  std::list<HttpCall> waiting_;
  std::uint64_t waiting_bytes_ = 0;
  std::uint32_t requests_ = 0;  // Under way.
  std::uint32_t delays_ = 0;
  std::vector<Delay> new_delays_;
};

}  // namespace hangar::abi::kube_runtime
