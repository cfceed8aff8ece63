// How much the guests of one namespace may print together over time. The bound of one guest is its
// own (Allowance); a namespace may have any number of guests, and all output goes to one log.
#pragma once

#include "base/time.h"
#include "base/token_bucket.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace hangar::output {

// Loop thread.
class NamespaceAllowances {
 public:
  struct Bound {
    std::uint64_t bytes_per_second = 0;  // As output_rate() has it.
    std::string set_by;                  // "TenantPolicy strangers"; empty: the host.
  };
  // A namespace may print no more than the host's bound, kNamespaceOutputBytesPerSecond, and no
  // more than what this returns, if anything. Called for each line.
  void limit_namespaces(std::function<std::optional<Bound>(const std::string&)> bound) {
    bound_ = std::move(bound);
  }

  // Nothing: the line may be kept, and counts. Otherwise the reason why it is not, for people.
  // Output of cluster-scoped objects has no bound here: they belong to administrators.
  [[nodiscard]] std::optional<std::string> refuse(const std::string& namespace_name,
                                                  std::size_t line_bytes, Instant now);

  // Namespaces that have printed lately.
  [[nodiscard]] std::size_t size() const { return buckets_.size(); }

 private:
  [[nodiscard]] Bound bound_of(const std::string& namespace_name) const;
  void forget_full(Instant now);

  std::function<std::optional<Bound>(const std::string&)> bound_;
  std::map<std::string, TokenBucket> buckets_;  // Those that may not be full.
  Instant swept_;
};

}  // namespace hangar::output
