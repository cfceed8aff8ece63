// What guests have written a moment ago, so that none reads of a time before its own write.
//
// The host's caches follow the API server at a distance, and so do the API server's own. A guest
// that writes and then reads with resourceVersion=0 could be shown the state before. Versions of
// one resource can be compared (KEP-5504; served so since Kubernetes 1.35), so a read that is not
// as new as the reader's last write there is the API server's to answer. Loop thread only.
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

// Longer than any cache is behind; a watch that stands still is begun anew long before.
inline constexpr std::chrono::minutes kOwnWritesKept{10};
// Of one user. Who writes in more places reads from the API server for as long as that is kept.
inline constexpr std::size_t kOwnWritePlacesMax = 64;
// Of all users, to measure how far the caches are behind: writes that no watch has told of, and
// versions told last, since a watch may be ahead of the write's answer.
inline constexpr std::size_t kOwnWritesAwaitedMax = 4096;
inline constexpr std::size_t kVersionsToldMax = 64;

class OwnWrites {
 public:
  // Of a write whose version nobody knows (a deletion; one that was not answered): no cache is
  // known to have it.
  static constexpr std::uint64_t kUnknownVersion = std::numeric_limits<std::uint64_t>::max();

  explicit OwnWrites(Metrics& metrics);

  // A write of `user`, before he reads the answer. `status` is zero if there was none.
  void wrote(const std::string& user, const RequestTarget& target, int status,
             std::string_view body, Instant now);
  // How new a read by `user` has to be; zero: anything will do.
  [[nodiscard]] std::uint64_t oldest_for(const std::string& user, const RequestTarget& read,
                                         Instant now) const;
  // A watch of ours has told of this version.
  void seen(std::uint64_t version, Instant now);
  void sweep(Instant now);

 private:
  struct Place {
    std::string group;
    std::string plural;
    std::string namespace_;  // Empty: of the cluster, or in all namespaces.
    auto operator<=>(const Place&) const = default;
  };
  struct Writes {
    std::uint64_t version = 0;  // The highest.
    std::optional<Instant> at;
    std::optional<Instant> unknown_at;  // The last one whose version nobody knows.
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
