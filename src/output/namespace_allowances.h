// Limits how much the guests of one namespace print together over time. Allowance limits each
// guest, but a namespace may have any number of guests, and all output goes to one log.
#pragma once

#include "base/period_sum.h"
#include "base/time.h"
#include "base/token_bucket.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace hangar::output {

inline constexpr std::chrono::seconds kOutputMeasured{15};

// Loop thread.
class NamespaceAllowances {
 public:
  struct Bound {
    std::uint64_t bytes_per_second = 0;  // The average of output_rate().
    std::string set_by;                  // "TenantPolicy strangers"; empty: the host.
  };
  // A namespace may print no more than the host's bound, kNamespaceOutputBytesPerSecond, and no
  // more than the bound that `bound` returns, if any. Called for each line.
  void limit_namespaces(std::function<std::optional<Bound>(const std::string&)> bound) {
    bound_ = std::move(bound);
  }

  // std::nullopt: the line may be kept, and is counted. Otherwise the reason for the refusal, for
  // people. Output of cluster-scoped objects has no bound here: they belong to administrators.
  [[nodiscard]] std::optional<std::string> refuse(const std::string& namespace_name,
                                                  std::size_t line_bytes, Instant now);

  // Bytes a second of kept output of the namespace's guests, counted as `hangar logs` prints it:
  // the average over the last complete period of kOutputMeasured.
  [[nodiscard]] std::uint64_t bytes_per_second(const std::string& namespace_name,
                                               Instant now) const;

  // The number of namespaces that have printed lately.
  [[nodiscard]] std::size_t size() const { return accounts_.size(); }

 private:
  struct Account {
    TokenBucket bucket;
    PeriodSum kept_bytes{kOutputMeasured};
  };

  [[nodiscard]] Bound bound_of(const std::string& namespace_name) const;
  void forget_idle(Instant now);

  std::function<std::optional<Bound>(const std::string&)> bound_;
  std::map<std::string, Account> accounts_;  // Only namespaces that have printed lately.
  Instant swept_;
};

}  // namespace hangar::output
