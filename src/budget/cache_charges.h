// Records which tenants use which files of the caches on disk, and decides which files are deleted:
// fetched modules, compiled code, and the memory images of modules that run.
//
// Each tenant that uses a file is charged for the whole file. So a tenant's charge depends on its
// own uses only, and reveals nothing about others. The rules:
//   1. A tenant beyond its limit loses its own least recent uses. A file is deleted with its last
//      use: no tenant's limit takes a file away from another one.
//   2. While a Hold exists (a guest runs), its use does not end. A file that does not fit beside
//      the held uses is refused.
//   3. When all files together are too large, the tenant with the highest charge loses its least
//      recent uses first. A tenant with no more than an equal share loses nothing.
//   4. A file that nobody has used since this process started is charged to nobody. For rule 3, all
//      these files together count as those of one tenant.
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

// How many uses of one namespace are remembered, which bounds the memory for them; further ones end
// the least recent uses that are not held.
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

  // Deletes a file that has lost its last use, unless is_used() is true again. Called without a
  // lock on the thread that ended the use. Set it while no other thread uses this object.
  using Remover = std::function<void(const std::string& name)>;
  void set_remover(Shelf shelf, Remover remover);

  // Records that the tenant uses this file, of that many bytes, now. The host itself is not
  // charged, and only namespaces have a limit. A shortage changes nothing. Blocks on the disk when
  // it deletes files.
  [[nodiscard]] std::expected<Hold, Shortage> charge(const Tenant& tenant, const Key& key,
                                                     std::uint64_t bytes);
  // The shortage with which charge() would refuse a file of that many bytes that the tenant does
  // not use yet.
  [[nodiscard]] std::expected<void, Shortage> check(const Tenant& tenant,
                                                    std::uint64_t bytes) const;
  // The file has been deleted. Its uses end when nothing holds them: an open file still takes
  // disk space.
  void forget(const Key& key);
  [[nodiscard]] bool is_used(const Key& key) const;

  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    std::int64_t used = 0;  // In any unit: the time of its last use.
  };
  // The indices of the files to delete, so that at most `bytes_max` remain of all files of that
  // shelf; never `kept`. A tenant's held files are chosen last: their bytes become free only when
  // the files are closed.
  [[nodiscard]] std::vector<std::size_t> make_room(Shelf shelf, std::span<const File> files,
                                                   std::uint64_t bytes_max, std::string_view kept);

  // Replaces the earlier limits. A lower limit takes effect with the tenant's next use.
  void limit_tenants(TenantLimits limits);
  [[nodiscard]] TenantLimits::Limit limit_of(const Tenant& tenant) const;
  [[nodiscard]] const Options& options() const;
  [[nodiscard]] std::uint64_t charged_bytes(const Tenant& tenant) const;
  struct Charged {
    Tenant tenant;
    std::uint64_t bytes = 0;
  };
  // All tenants with a charge.
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

  std::shared_ptr<State> state_;  // Null: it holds nothing.
  std::unique_ptr<const Of> of_;
};

// For a status: LimitExceeded.
[[nodiscard]] Error too_little_disk(const Shortage& shortage);
[[nodiscard]] bool is_too_little_disk(const Error& error);

}  // namespace hangar::budget
