// Bounds the bytes that are held at the same time: by all tenants together, by one tenant, by one
// consumer. Code that is about to allocate memory reserves it first, and names the consumer.
#pragma once

#include "budget/consumer.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hangar::budget {

// Why a reservation failed.
struct Shortage {
  enum class Level : std::uint8_t { Consumer, Tenant, Host };

  Level level = Level::Host;
  std::uint64_t wanted_bytes = 0;  // In addition to those held already.
  std::uint64_t free_bytes = 0;    // Free at that level.
  std::uint64_t limit_bytes = 0;   // Limit of that level.
  std::string limited_by = {};     // The policy that limits a tenant; empty: the host's settings.

  // Waiting does not help: the limit of the level is too small even if nothing else is held.
  [[nodiscard]] bool is_final() const { return wanted_bytes > limit_bytes; }

  bool operator==(const Shortage&) const = default;
};
// For a status: "64 MiB are needed, 10 MiB of the 256 MiB of its namespace (TenantPolicy a) are
// free".
[[nodiscard]] std::string to_text(const Shortage& shortage);
// "64 MiB", "10 KiB", "100 bytes": rounded down to the unit.
[[nodiscard]] std::string size_text(std::uint64_t bytes);

// Limits of single tenants; only those below the ones of Accounts::Limits have an effect.
struct TenantLimits {
  struct Limit {
    std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max();
    std::string set_by = {};  // The name of the policy, for messages.

    bool operator==(const Limit&) const = default;
  };
  Limit others = {};  // For namespaces not listed below.
  std::map<std::string, Limit> namespaces = {};

  bool operator==(const TenantLimits&) const = default;
};

class Accounts;

// Holds its bytes until it is destroyed, which must happen before the Accounts are destroyed. One
// thread at a time.
class Reservation {
 public:
  Reservation(Reservation&& other) noexcept
      : accounts_(other.accounts_),
        consumer_(std::move(other.consumer_)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Fails, and changes nothing, if the additional bytes are not available. A smaller size
  // never fails.
  [[nodiscard]] std::expected<void, Shortage> resize(std::uint64_t bytes);

 private:
  friend class Accounts;
  void swap(Reservation& other) noexcept;
  Reservation(Accounts& accounts, Consumer consumer, std::uint64_t bytes)
      : accounts_(&accounts), consumer_(std::move(consumer)), bytes_(bytes) {}

  Accounts* accounts_;
  Consumer consumer_;
  std::uint64_t bytes_;  // Zero once moved from.
};

// Guarantees: no level grows beyond its limit, except by tenant_bytes_assured. A tenant that holds
// more than a lowered limit keeps its bytes. Any thread.
class Accounts {
 public:
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

  struct Limits {
    std::uint64_t host_bytes_max = kUnlimited;  // All tenants together.
    std::uint64_t tenant_bytes_max = kUnlimited;
    std::uint64_t consumer_bytes_max = kUnlimited;
    // A tenant that holds no more than this is never refused because of other tenants, even if all
    // together then hold more than `host_bytes_max`.
    std::uint64_t tenant_bytes_assured = 0;
    // The part of `host_bytes_max` that is reserved for consumers with Consumer::may_use_kept.
    std::uint64_t kept_bytes = 0;
  };
  explicit Accounts(Limits limits) : limits_(limits) {}
  Accounts(const Accounts&) = delete;
  Accounts& operator=(const Accounts&) = delete;
  ~Accounts();

  // For the host itself only `host_bytes_max` applies.
  [[nodiscard]] std::expected<Reservation, Shortage> reserve(Consumer consumer,
                                                             std::uint64_t bytes);

  // Sets that many bytes of `host_bytes_max` aside: reserve() and resize() leave them free, except
  // for consumers that may use kept bytes and for assured bytes. Only reserve_aside() takes them.
  // Zero sets nothing aside.
  void set_aside(std::uint64_t bytes);
  [[nodiscard]] std::expected<Reservation, Shortage> reserve_aside(Consumer consumer,
                                                                   std::uint64_t bytes);

  // The most bytes that a consumer of the tenant could reserve now, apart from its own limit and
  // from bytes that only some may use. `aside`: with the bytes that are set aside, or without.
  enum class Aside : bool { Left, Taken };
  [[nodiscard]] std::uint64_t room_of(const Tenant& tenant, Aside aside = Aside::Left) const;

  // Replaces the earlier limits. If a limit has grown, waiting reservations are retried.
  void limit_tenants(TenantLimits limits);
  // The limit of one tenant, from these and from limits(), and the policy that set it.
  [[nodiscard]] TenantLimits::Limit limit_of(const Tenant& tenant) const;

  // Called after bytes became free or a limit changed, on the thread that did it. Set it while no
  // other thread uses this object.
  void set_on_freed(std::function<void()> on_freed) { on_freed_ = std::move(on_freed); }

  [[nodiscard]] const Limits& limits() const { return limits_; }
  [[nodiscard]] std::uint64_t held_bytes() const;
  [[nodiscard]] std::uint64_t held_bytes(const Tenant& tenant) const;
  [[nodiscard]] std::uint64_t held_bytes(const Consumer& consumer) const;
  struct Holding {
    Tenant tenant;
    std::uint64_t bytes = 0;
  };
  // All tenants that hold bytes.
  [[nodiscard]] std::vector<Holding> holdings() const;

 private:
  friend class Reservation;
  struct TenantUse {
    std::uint64_t bytes = 0;
    std::map<std::string, std::uint64_t> consumers;
  };

  [[nodiscard]] std::expected<void, Shortage> add(const Consumer& consumer, std::uint64_t bytes,
                                                  Aside aside = Aside::Left);
  void subtract(const Consumer& consumer, std::uint64_t bytes);
  // Requires that the mutex is held.
  [[nodiscard]] TenantLimits::Limit locked_limit_of(const Tenant& tenant) const;

  const Limits limits_;
  std::function<void()> on_freed_;
  mutable std::mutex mutex_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t usual_bytes_ = 0;  // Of these, by consumers that may not use kept bytes.
  std::uint64_t aside_bytes_ = 0;
  std::map<Tenant, TenantUse> tenants_;  // Only tenants, and consumers of them, that hold bytes.
  TenantLimits tenant_limits_;
};

}  // namespace hangar::budget
