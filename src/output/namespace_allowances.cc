#include "output/namespace_allowances.h"

#include "base/time.h"
#include "base/token_bucket.h"
#include "output/allowance.h"
#include "output/limits.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace hangar::output {

namespace {

constexpr std::chrono::seconds kSweepInterval{60};

}  // namespace

NamespaceAllowances::Bound NamespaceAllowances::bound_of(const std::string& namespace_name) const {
  Bound host{.bytes_per_second = limits::kNamespaceOutputBytesPerSecond, .set_by = {}};
  if (!bound_) return host;
  std::optional<Bound> own = bound_(namespace_name);
  return own && own->bytes_per_second < host.bytes_per_second ? *std::move(own) : std::move(host);
}

std::optional<std::string> NamespaceAllowances::refuse(const std::string& namespace_name,
                                                       std::size_t line_bytes, Instant now) {
  if (namespace_name.empty()) return std::nullopt;
  forget_idle(now);
  const Bound bound = bound_of(namespace_name);
  const TokenBucket::Options wanted = output_rate(bound.bytes_per_second);
  const auto [found, is_new] =
      accounts_.try_emplace(namespace_name, Account{.bucket = TokenBucket(wanted)});
  Account& account = found->second;
  if (!is_new && account.bucket.options().per_second != wanted.per_second) {
    account.bucket = TokenBucket(wanted);
  }
  if (account.bucket.try_take(now, static_cast<double>(line_bytes))) {
    account.kept_bytes.add(now, line_bytes);
    return std::nullopt;
  }
  return fmt::format("guests of namespace {} may print {} bytes a second together{}",
                     namespace_name, bound.bytes_per_second,
                     bound.set_by.empty() ? std::string() : fmt::format(" ({})", bound.set_by));
}

std::uint64_t NamespaceAllowances::bytes_per_second(const std::string& namespace_name,
                                                    Instant now) const {
  const auto found = accounts_.find(namespace_name);
  if (found == accounts_.end()) return 0;
  return found->second.kept_bytes.last(now) / static_cast<std::uint64_t>(kOutputMeasured.count());
}

void NamespaceAllowances::forget_idle(Instant now) {
  if (now < swept_ + kSweepInterval) return;
  swept_ = now;
  for (auto at = accounts_.begin(); at != accounts_.end();) {
    Account& account = at->second;
    const bool is_idle = account.bucket.is_full(now) && account.kept_bytes.is_zero(now);
    at = is_idle ? accounts_.erase(at) : std::next(at);
  }
}

}  // namespace hangar::output
