#include "output/namespace_allowances.h"

#include "base/time.h"
#include "base/token_bucket.h"
#include "output/allowance.h"
#include "output/limits.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
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
  forget_full(now);
  const Bound bound = bound_of(namespace_name);
  const TokenBucket::Options wanted = output_rate(bound.bytes_per_second);
  const auto [found, is_new] = buckets_.try_emplace(namespace_name, wanted);
  TokenBucket& bucket = found->second;
  if (!is_new && bucket.options().per_second != wanted.per_second) bucket = TokenBucket(wanted);
  if (bucket.try_take(now, static_cast<double>(line_bytes))) return std::nullopt;
  return fmt::format("guests of namespace {} may print {} bytes a second together{}",
                     namespace_name, bound.bytes_per_second,
                     bound.set_by.empty() ? std::string() : fmt::format(" ({})", bound.set_by));
}

void NamespaceAllowances::forget_full(Instant now) {
  if (now < swept_ + kSweepInterval) return;
  swept_ = now;
  for (auto at = buckets_.begin(); at != buckets_.end();)
    at = at->second.is_full(now) ? buckets_.erase(at) : std::next(at);
}

}  // namespace hangar::output
