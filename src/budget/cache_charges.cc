#include "budget/cache_charges.h"

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::budget {

namespace {

// Files take whole blocks.
constexpr std::uint64_t kBlockBytes = 4096;

constexpr std::uint64_t on_disk(std::uint64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

}  // namespace

struct CacheCharges::State {
  struct Use {
    std::uint64_t id = 0;
    std::uint64_t age = 0;  // Higher: more recent.
    std::uint32_t holds = 0;
  };
  struct File {
    std::uint64_t bytes = 0;
    std::map<Tenant, Use> uses;  // Never empty.
    bool is_gone = false;        // Deleted; only holders still have it open.
  };
  struct TenantUse {
    std::uint64_t bytes = 0;
    std::map<std::uint64_t, Key> by_age;
  };
  using Gone = std::vector<Key>;

  explicit State(Options options_in) : options(options_in) {}

  // All functions below require that the mutex is held.
  [[nodiscard]] TenantLimits::Limit limit_of(const Tenant& tenant) const {
    if (tenant.namespace_name().empty()) return {.bytes_max = Accounts::kUnlimited};
    const auto own = limits.namespaces.find(tenant.namespace_name());
    const TenantLimits::Limit& limit = own == limits.namespaces.end() ? limits.others : own->second;
    if (limit.bytes_max < options.namespace_bytes_max) return limit;
    return {.bytes_max = options.namespace_bytes_max};
  }

  [[nodiscard]] Use* find(const Tenant& tenant, const Key& key) {
    const auto file = files.find(key);
    if (file == files.end()) return nullptr;
    const auto use = file->second.uses.find(tenant);
    return use == file->second.uses.end() ? nullptr : &use->second;
  }

  [[nodiscard]] std::uint64_t held_bytes(const Tenant& tenant, const Key* except) const {
    std::uint64_t bytes = 0;
    const auto found = tenants.find(tenant);
    if (found == tenants.end()) return bytes;
    for (const auto& [age, key] : found->second.by_age) {
      const File& file = files.at(key);
      const bool counts = file.uses.at(tenant).holds > 0 && (except == nullptr || key != *except);
      if (counts) bytes += file.bytes;
    }
    return bytes;
  }

  [[nodiscard]] std::expected<void, Shortage> check(const Tenant& tenant, std::uint64_t bytes,
                                                    const Key* key) const {
    const TenantLimits::Limit limit = limit_of(tenant);
    if (limit.bytes_max == Accounts::kUnlimited) return {};
    const std::uint64_t held = held_bytes(tenant, key);
    // `held` may exceed a limit that was lowered later.
    const std::uint64_t free = limit.bytes_max > held ? limit.bytes_max - held : 0;
    if (bytes <= free) return {};
    return std::unexpected(Shortage{.level = Shortage::Level::Tenant,
                                    .wanted_bytes = bytes,
                                    .free_bytes = free,
                                    .limit_bytes = limit.bytes_max,
                                    .limited_by = limit.set_by});
  }

  void end(const Tenant& tenant, const Key& key, Gone& gone) {
    const auto file = files.find(key);
    if (file == files.end()) return;
    const auto use = file->second.uses.find(tenant);
    if (use == file->second.uses.end()) return;
    const auto charged = tenants.find(tenant);
    charged->second.bytes -= file->second.bytes;
    charged->second.by_age.erase(use->second.age);
    if (charged->second.by_age.empty()) tenants.erase(charged);
    file->second.uses.erase(use);
    if (!file->second.uses.empty()) return;
    gone.push_back(key);
    files.erase(file);
  }

  void resize(File& file, std::uint64_t bytes) {
    for (const auto& [tenant, use] : file.uses)
      tenants[tenant].bytes += bytes - file.bytes;
    file.bytes = bytes;
  }

  // Ends the least recent uses that are not held, except that of `kept`, until the tenant is within
  // its limits.
  void shrink(const Tenant& tenant, const Key& kept, Gone& gone) {
    if (tenant.namespace_name().empty()) return;
    const std::uint64_t bytes_max = limit_of(tenant).bytes_max;
    const TenantUse& charged = tenants.at(tenant);
    for (auto next = charged.by_age.begin(); next != charged.by_age.end();) {
      if (charged.bytes <= bytes_max && charged.by_age.size() <= options.uses_per_namespace_max)
        return;
      const Key key = next->second;
      ++next;
      if (key != kept && find(tenant, key)->holds == 0) end(tenant, key, gone);
    }
  }

  void release(const Tenant& tenant, const Key& key, std::uint64_t id) {
    const std::scoped_lock lock(mutex);
    Use* const use = find(tenant, key);
    if (use == nullptr || use->id != id || --use->holds > 0) return;
    Gone gone;
    if (key.shelf == Shelf::Images || files.at(key).is_gone) end(tenant, key, gone);
  }

  const Options options;
  std::array<Remover, 3> removers;  // By shelf.
  mutable std::mutex mutex;         // Guards all below.
  std::map<Key, File> files;
  std::map<Tenant, TenantUse> tenants;  // Only tenants with a use.
  TenantLimits limits;
  std::uint64_t last = 0;  // The last age or id.
};

CacheCharges::Hold::Hold(std::shared_ptr<State> state, Of of)
    : state_(std::move(state)), of_(std::make_unique<const Of>(std::move(of))) {}

CacheCharges::Hold& CacheCharges::Hold::operator=(Hold&& other) noexcept {
  Hold moved(std::move(other));
  std::swap(state_, moved.state_);
  std::swap(of_, moved.of_);
  return *this;
}

CacheCharges::Hold::~Hold() {
  if (state_ && of_) state_->release(of_->tenant, of_->key, of_->use);
}

CacheCharges::CacheCharges(Options options) : state_(std::make_shared<State>(options)) {}

CacheCharges::~CacheCharges() = default;

void CacheCharges::set_remover(Shelf shelf, Remover remover) {
  state_->removers.at(static_cast<std::size_t>(shelf)) = std::move(remover);
}

std::expected<CacheCharges::Hold, Shortage> CacheCharges::charge(const Tenant& tenant,
                                                                 const Key& key,
                                                                 std::uint64_t bytes) {
  if (tenant.is_host()) return Hold();
  bytes = on_disk(bytes);
  State::Gone gone;
  std::uint64_t id = 0;
  {
    const std::scoped_lock lock(state_->mutex);
    const State::Use* const before = state_->find(tenant, key);
    const bool is_held = before != nullptr && before->holds > 0;
    if (!is_held) {
      if (auto fits = state_->check(tenant, bytes, &key); !fits) {
        return std::unexpected(std::move(fits).error());
      }
    }
    State::File& file = state_->files[key];
    file.is_gone = false;
    if (file.bytes != bytes) state_->resize(file, bytes);
    const auto [found, is_new] = file.uses.try_emplace(tenant);
    State::Use& use = found->second;
    State::TenantUse& charged = state_->tenants[tenant];
    if (is_new) {
      use.id = ++state_->last;
      charged.bytes += bytes;
    } else {
      charged.by_age.erase(use.age);
    }
    use.age = ++state_->last;
    ++use.holds;
    charged.by_age.emplace(use.age, key);
    id = use.id;
    state_->shrink(tenant, key, gone);
  }
  // Without the lock: a remover deletes files, and calls is_used().
  for (const Key& one : gone) {
    const Remover& remove = state_->removers.at(static_cast<std::size_t>(one.shelf));
    if (remove) remove(one.name);
  }
  return Hold(state_, {.tenant = tenant, .key = key, .use = id});
}

std::expected<void, Shortage> CacheCharges::check(const Tenant& tenant, std::uint64_t bytes) const {
  const std::scoped_lock lock(state_->mutex);
  return state_->check(tenant, on_disk(bytes), nullptr);
}

void CacheCharges::forget(const Key& key) {
  const std::scoped_lock lock(state_->mutex);
  const auto file = state_->files.find(key);
  if (file == state_->files.end()) return;
  file->second.is_gone = true;
  std::vector<Tenant> ended;
  for (const auto& [tenant, use] : file->second.uses) {
    if (use.holds == 0) ended.push_back(tenant);
  }
  State::Gone gone;
  for (const Tenant& tenant : ended)
    state_->end(tenant, key, gone);
}

bool CacheCharges::is_used(const Key& key) const {
  const std::scoped_lock lock(state_->mutex);
  return state_->files.contains(key);
}

std::vector<std::size_t> CacheCharges::make_room(Shelf shelf, std::span<const File> files,
                                                 std::uint64_t bytes_max, std::string_view kept) {
  std::vector<std::size_t> chosen;
  std::uint64_t total = 0;
  for (const File& file : files)
    total += file.bytes;
  if (total <= bytes_max) return chosen;

  struct Holder {
    std::uint64_t bytes = 0;
    // By age, the most recent first: the last entry is the next to lose. Held uses are lost after
    // all others.
    std::vector<std::pair<std::uint64_t, std::size_t>> uses;
    std::vector<std::pair<std::uint64_t, std::size_t>> held;

    [[nodiscard]] bool has_any() const { return !uses.empty() || !held.empty(); }
  };
  const std::scoped_lock lock(state_->mutex);
  std::map<Tenant, Holder> holders;
  for (std::size_t index = 0; index < files.size(); ++index) {
    const File& file = files[index];
    const bool may_go = file.name != kept;
    const auto found = state_->files.find({.shelf = shelf, .name = file.name});
    if (found == state_->files.end()) {
      // Files that nobody has used stand under the host, which is never charged itself.
      Holder& nobody = holders[Tenant::host()];
      nobody.bytes += file.bytes;
      constexpr std::uint64_t kSign = std::uint64_t{1} << 63U;  // Keeps the order of signed times.
      if (may_go) nobody.uses.emplace_back(static_cast<std::uint64_t>(file.used) ^ kSign, index);
      continue;
    }
    for (const auto& [tenant, use] : found->second.uses) {
      Holder& holder = holders[tenant];
      holder.bytes += file.bytes;
      if (may_go) (use.holds == 0 ? holder.uses : holder.held).emplace_back(use.age, index);
    }
  }
  for (auto& [tenant, holder] : holders) {
    std::ranges::sort(holder.uses, std::greater<>());
    std::ranges::sort(holder.held, std::greater<>());
  }

  std::vector<bool> is_chosen(files.size());
  const auto choose = [&](std::size_t index) {
    is_chosen[index] = true;
    chosen.push_back(index);
    total -= files[index].bytes;
  };
  // By file: how many tenants hold it and have not yet lost it in the loop below.
  std::map<std::size_t, std::size_t> holding;
  for (const auto& [tenant, holder] : holders) {
    for (const auto& [age, index] : holder.held)
      ++holding[index];
  }
  // Chooses a file once all its users have lost it, held or not.
  const auto choose_if_free = [&](std::size_t index, const Key& key) {
    if (is_chosen[index]) return;
    const auto file = state_->files.find(key);
    if (file == state_->files.end()) return choose(index);
    const bool is_awaited = std::ranges::any_of(
        file->second.uses, [](const auto& use) { return use.second.holds == 0; });
    if (is_awaited || holding[index] > 0) return;
    choose(index);
    file->second.is_gone = true;
  };
  State::Gone gone;
  while (total > bytes_max) {
    const auto most = std::ranges::max_element(holders, {}, [](const auto& one) {
      return std::pair(one.second.has_any(), one.second.bytes);
    });
    if (most == holders.end() || !most->second.has_any()) break;
    Holder& holder = most->second;
    const bool is_held = holder.uses.empty();
    auto& from = is_held ? holder.held : holder.uses;
    const std::size_t index = from.back().second;
    from.pop_back();
    holder.bytes -= files[index].bytes;
    const Key key{.shelf = shelf, .name = files[index].name};
    if (is_held) {
      --holding[index];
    } else if (!most->first.is_host()) {
      state_->end(most->first, key, gone);
    }
    choose_if_free(index, key);
  }
  return chosen;
}

void CacheCharges::limit_tenants(TenantLimits limits) {
  const std::scoped_lock lock(state_->mutex);
  state_->limits = std::move(limits);
}

TenantLimits::Limit CacheCharges::limit_of(const Tenant& tenant) const {
  const std::scoped_lock lock(state_->mutex);
  return state_->limit_of(tenant);
}

const CacheCharges::Options& CacheCharges::options() const {
  return state_->options;
}

std::uint64_t CacheCharges::charged_bytes(const Tenant& tenant) const {
  const std::scoped_lock lock(state_->mutex);
  const auto found = state_->tenants.find(tenant);
  return found == state_->tenants.end() ? 0 : found->second.bytes;
}

std::vector<CacheCharges::Charged> CacheCharges::charged() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<Charged> all;
  all.reserve(state_->tenants.size());
  for (const auto& [tenant, use] : state_->tenants)
    all.push_back({.tenant = tenant, .bytes = use.bytes});
  return all;
}

Error too_little_disk(const Shortage& shortage) {
  Error error(
      ErrorKind::LimitExceeded,
      fmt::format("disk for modules and compiled code: {}: use smaller modules, or fewer at "
                  "a time, or have budgets.moduleDisk of a TenantPolicy changed",
                  to_text(shortage)));
  return std::move(error).with_reason(
      std::string(shortage.limited_by.empty() ? kNamespaceDisk : kRefusedByPolicy));
}

bool is_too_little_disk(const Error& error) {
  return error.kind() == ErrorKind::LimitExceeded &&
         (error.reason() == kRefusedByPolicy || error.reason() == kNamespaceDisk);
}

}  // namespace hangar::budget
