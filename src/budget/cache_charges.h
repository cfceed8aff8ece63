// Who uses which files of the caches on disk, and which of them have to go: fetched modules,
// compiled code, and the memory images of modules that run.
//
// A file is charged as a whole to each tenant that uses it. So what a tenant is charged depends on
// its own uses only, and tells it nothing about others. The rules:
//   1. A tenant beyond its limit loses its own least recent uses. A file goes with its last use: no
//      tenant's limit takes a file away from another one.
//   2. While a Hold exists (a guest runs), its use does not end. What does not fit beside the held
//      uses is refused.
//   3. When the files of all are too many, the tenant that is charged the most loses its least
//      recent uses first. A tenant with no more than an equal share loses nothing.
//   4. A file that nobody has used since this process started is charged to nobody. For rule 3, all
//      of these together are as one tenant's.
#pragma once

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::budget {

// The reason of errors that a TenantPolicy causes, and of the conditions that show them.
inline constexpr std::string_view kRefusedByPolicy = "RefusedByPolicy";
// The reason of too_little_disk() where no policy sets the limit.
inline constexpr std::string_view kNamespaceDisk = "NamespaceDisk";

// How many files of one namespace are remembered, which bounds the memory for this; further ones
// end the least recent uses that are not held.
inline constexpr std::size_t kCacheUsesPerNamespaceMax = 1024;

// Any thread.
class CacheCharges {
 public:
  enum class Shelf : std::uint8_t {
    Modules,
    Code,
    Images,  // Not cached: the file and its use end with the last Hold.
  };
  struct Key {
    Shelf shelf = Shelf::Modules;
    std::string name;

    auto operator<=>(const Key&) const = default;
  };
  struct Options {
    std::uint64_t namespace_bytes_max = Accounts::kUnlimited;
    std::size_t uses_per_namespace_max = kCacheUsesPerNamespaceMax;
  };
  class Hold;

  CacheCharges() : CacheCharges(Options{}) {}
  explicit CacheCharges(Options options);
  CacheCharges(const CacheCharges&) = delete;
  CacheCharges& operator=(const CacheCharges&) = delete;
  ~CacheCharges();

  // Deletes a file that has lost its last use, unless is_used() by now; on the thread whose call
  // ended the use, and with no lock held. Set while no other thread uses this object.
  using Remover = std::function<void(const std::string& name)>;
  void set_remover(Shelf shelf, Remover remover);

  // The tenant uses this file, of that many bytes, now. Nothing is charged to the host itself, and
  // only namespaces have a limit. A shortage changes nothing. Blocks on the disk when files go.
  [[nodiscard]] std::expected<Hold, Shortage> charge(const Tenant& tenant, const Key& key,
                                                     std::uint64_t bytes);
  // The shortage if a file of that many bytes, which the tenant does not use yet, would be refused.
  [[nodiscard]] std::expected<void, Shortage> check(const Tenant& tenant,
                                                    std::uint64_t bytes) const;
  // The file is gone. Its uses end when nothing holds them: an open file takes its place on disk.
  void forget(const Key& key);
  [[nodiscard]] bool is_used(const Key& key) const;

  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    std::int64_t used = 0;  // In any unit: the time of its last use.
  };
  // The indices of the files to delete, so that at most `bytes_max` remain of all files of that
  // shelf; never of `kept`. Of a tenant, what is held goes last: its bytes come back when it is not
  // open any more.
  [[nodiscard]] std::vector<std::size_t> make_room(Shelf shelf, std::span<const File> files,
                                                   std::uint64_t bytes_max, std::string_view kept);

  // Replaces the earlier limits. A lower one counts from the tenant's next use.
  void limit_tenants(TenantLimits limits);
  [[nodiscard]] TenantLimits::Limit limit_of(const Tenant& tenant) const;
  [[nodiscard]] const Options& options() const;
  [[nodiscard]] std::uint64_t charged_bytes(const Tenant& tenant) const;
  struct Charged {
    Tenant tenant;
    std::uint64_t bytes = 0;
  };
  // All tenants that are charged anything.
  [[nodiscard]] std::vector<Charged> charged() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

// May outlive the CacheCharges. One thread at a time.
class CacheCharges::Hold {
 public:
  // Holds nothing.
  Hold() = default;
  Hold(Hold&& other) noexcept = default;
  Hold& operator=(Hold&& other) noexcept;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold();

 private:
  friend class CacheCharges;
  struct Of {
    Tenant tenant;
    Key key;
    std::uint64_t use = 0;
  };
  Hold(std::shared_ptr<State> state, Of of);

  std::shared_ptr<State> state_;  // Null: nothing.
  std::unique_ptr<const Of> of_;
};

// For a status: LimitExceeded.
[[nodiscard]] Error too_little_disk(const Shortage& shortage);
[[nodiscard]] bool is_too_little_disk(const Error& error);

}  // namespace hangar::budget
