// Recent writes of guests, so that no guest reads a state from before its own write.
//
// The host's cache lags behind the API server, and so do the API server's own caches. A guest that
// writes and then reads with resourceVersion=0 could be shown the state before its write. Versions
// of one resource can be compared (KEP-5504; served so since Kubernetes 1.35). So a read goes to
// the API server if the cache is older than the reader's last write there. Loop thread only.
#pragma once

#include "base/metrics.h"
#include "base/time.h"
#include "gateway/request_target.h"

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::gateway {

// Longer than any cache lags; a watch that stalls is restarted long before.
inline constexpr std::chrono::minutes kOwnWritesKept{10};
// Places of one user. If a user writes in more of them, all its reads go to the API server until
// that write expires.
inline constexpr std::size_t kOwnWritePlacesMax = 64;
// For all users, to measure how far the cache lags: writes that no watch has reported yet, and the
// last versions reported, since a watch may report a write before its answer arrives.
inline constexpr std::size_t kOwnWritesAwaitedMax = 4096;
inline constexpr std::size_t kVersionsToldMax = 64;

class OwnWrites {
 public:
  // The version of a write that is unknown (a deletion, or a write without an answer): no cache is
  // known to include it.
  static constexpr std::uint64_t kUnknownVersion = std::numeric_limits<std::uint64_t>::max();

  explicit OwnWrites(Metrics& metrics);

  // Records a write of `user`. Call this before the guest gets the answer. `status` is zero if
  // there was no answer.
  void wrote(const std::string& user, const RequestTarget& target, int status,
             std::string_view body, Instant now);
  // The oldest version that a read by `user` may be answered from; zero: any.
  [[nodiscard]] std::uint64_t oldest_for(const std::string& user, const RequestTarget& read,
                                         Instant now) const;
  // A watch of the host has reported this version.
  void seen(std::uint64_t version, Instant now);
  void sweep(Instant now);

 private:
  struct Place {
    std::string group;
    std::string plural;
    std::string namespace_;  // Empty: cluster-scoped, or in all namespaces.
    auto operator<=>(const Place&) const = default;
  };
  struct Writes {
    std::uint64_t version = 0;  // The highest.
    std::optional<Instant> at;
    std::optional<Instant> unknown_at;  // The last write of unknown version.
  };
  struct User {
    std::map<Place, Writes> places;
    std::optional<Instant> has_too_many_at;
  };

  [[nodiscard]] static bool is_kept(const std::optional<Instant>& at, Instant now) {
    return at && now - *at < kOwnWritesKept;
  }

  Histogram& lag_seconds_;
  std::map<std::string, User> users_;
  std::map<std::uint64_t, Instant> awaited_;  // By version.
  std::array<std::uint64_t, kVersionsToldMax> told_{};
  std::size_t told_next_ = 0;
};

}  // namespace hangar::gateway
