#include "modules/proofs.h"

#include "base/result.h"
#include "base/time.h"
#include "modules/module_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::modules {

namespace {

constexpr std::string_view kGrant = "sha256:";

// A proof is Old after this many times the period in which it is fresh. The queue of a namespace
// moves within minutes, unless its own fetches keep it busy.
constexpr int kUnaskedPeriods = 2;

// A grant's entry has its own key, which no source's reference can have.
std::string grant_key(const Access& access, std::string_view sha256) {
  return proof_key(access.requester, fmt::format("{}{} {}", kGrant, sha256, access.scope));
}

}  // namespace

std::uint64_t Proofs::seconds_of(WallTime now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch());
  return static_cast<std::uint64_t>(std::max<std::int64_t>(seconds.count(), 0));
}

Standing Proofs::standing(const Access& access, const Resolution& resolution, WallTime now) const {
  if (resolution.credential != access.credential) return Standing::None;
  const std::uint64_t seconds = seconds_of(now);
  // The age is unknown where the clock was set back.
  if (resolution.proven_at > seconds) return Standing::Old;
  const std::chrono::seconds age(seconds - resolution.proven_at);
  if (age < kept_) return Standing::Fresh;
  return age < kUnaskedPeriods * kept_ ? Standing::Stale : Standing::Old;
}

Standing Proofs::standing(const Access& access, const std::string& sha256, WallTime now) const {
  Standing best = Standing::None;
  for (const std::string& key :
       {grant_key(access, sha256), proof_key(access.requester, access.name)}) {
    const std::optional<Resolution> entry = store_.resolution(key);
    if (entry && entry->sha256 == sha256) best = std::max(best, standing(access, *entry, now));
  }
  return best;
}

Result<> Proofs::grant(const Access& access, const std::string& sha256) const {
  const std::optional<Resolution> entry =
      store_.resolution(proof_key(access.requester, access.name));
  if (!entry) return {};
  return store_.remember(
      grant_key(access, sha256),
      {.sha256 = sha256, .credential = entry->credential, .proven_at = entry->proven_at});
}

Result<> Proofs::grant_copy(const Access& access, const std::string& sha256, WallTime now) const {
  return store_.remember(
      grant_key(access, sha256),
      {.sha256 = sha256, .credential = access.credential, .proven_at = seconds_of(now)});
}

Result<bool> Proofs::drop(const Access& access) const {
  const std::string reference = proof_key(access.requester, access.name);
  const std::string begin = proof_key(access.requester, kGrant);
  const std::string end = " " + access.scope;
  return store_.forget([&](std::string_view key, const Resolution& resolution) {
    const bool is_here = key == reference || (key.starts_with(begin) && key.ends_with(end));
    return is_here && resolution.credential == access.credential;
  });
}

}  // namespace hangar::modules
