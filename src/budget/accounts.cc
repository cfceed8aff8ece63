#include "budget/accounts.h"

#include "base/assert.h"
#include "base/limits.h"
#include "budget/consumer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::budget {

std::string size_text(std::uint64_t bytes) {
  if (bytes >= limits::kMiB) return fmt::format("{} MiB", bytes / limits::kMiB);
  if (bytes >= limits::kKiB) return fmt::format("{} KiB", bytes / limits::kKiB);
  return fmt::format("{} bytes", bytes);
}

std::string to_text(const Shortage& shortage) {
  const auto of = [&]() -> std::string {
    switch (shortage.level) {
      case Shortage::Level::Consumer:
        return "it alone";
      case Shortage::Level::Tenant:
        return shortage.limited_by.empty() ? "its namespace"
                                           : fmt::format("its namespace ({})", shortage.limited_by);
      case Shortage::Level::Host:
        break;
    }
    return "this host";
  };
  return fmt::format("{} are needed, {} of the {} of {} are free", size_text(shortage.wanted_bytes),
                     size_text(shortage.free_bytes), size_text(shortage.limit_bytes), of());
}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  Reservation(std::move(other)).swap(*this);
  return *this;
}

Reservation::~Reservation() {
  if (bytes_ > 0) accounts_->subtract(consumer_, bytes_);
}

std::expected<void, Shortage> Reservation::resize(std::uint64_t bytes) {
  if (bytes > bytes_) {
    if (auto added = accounts_->add(consumer_, bytes - bytes_); !added) return added;
  } else if (bytes < bytes_) {
    accounts_->subtract(consumer_, bytes_ - bytes);
  }
  bytes_ = bytes;
  return {};
}

void Reservation::swap(Reservation& other) noexcept {
  std::swap(accounts_, other.accounts_);
  std::swap(consumer_, other.consumer_);
  std::swap(bytes_, other.bytes_);
}

namespace {

// A tenant may hold more than a limit that was lowered later.
std::uint64_t free_of(std::uint64_t held, std::uint64_t limit) {
  return limit > held ? limit - held : 0;
}

}  // namespace

Accounts::~Accounts() {
  HANGAR_ASSERT(tenants_.empty(), "reservations end before their accounts");
}

std::expected<Reservation, Shortage> Accounts::reserve(Consumer consumer, std::uint64_t bytes) {
  if (const auto added = add(consumer, bytes); !added) return std::unexpected(added.error());
  return Reservation(*this, std::move(consumer), bytes);
}

std::expected<Reservation, Shortage> Accounts::reserve_aside(Consumer consumer,
                                                             std::uint64_t bytes) {
  if (const auto added = add(consumer, bytes, Aside::Taken); !added) {
    return std::unexpected(added.error());
  }
  return Reservation(*this, std::move(consumer), bytes);
}

void Accounts::set_aside(std::uint64_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    if (bytes == std::exchange(aside_bytes_, bytes)) return;
  }
  if (on_freed_) on_freed_();
}

std::uint64_t Accounts::held_bytes() const {
  const std::scoped_lock lock(mutex_);
  return held_bytes_;
}

std::uint64_t Accounts::held_bytes(const Tenant& tenant) const {
  const std::scoped_lock lock(mutex_);
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : found->second.bytes;
}

std::uint64_t Accounts::held_bytes(const Consumer& consumer) const {
  const std::scoped_lock lock(mutex_);
  const auto tenant = tenants_.find(consumer.tenant);
  if (tenant == tenants_.end()) return 0;
  const auto found = tenant->second.consumers.find(consumer.name);
  return found == tenant->second.consumers.end() ? 0 : found->second;
}

std::vector<Accounts::Holding> Accounts::holdings() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Holding> holdings;
  holdings.reserve(tenants_.size());
  for (const auto& [tenant, use] : tenants_)
    holdings.push_back({.tenant = tenant, .bytes = use.bytes});
  return holdings;
}

std::expected<void, Shortage> Accounts::add(const Consumer& consumer, std::uint64_t bytes,
                                            Aside aside) {
  if (bytes == 0) return {};
  const std::scoped_lock lock(mutex_);
  const auto tenant = tenants_.find(consumer.tenant);
  std::uint64_t tenant_held = 0;
  std::uint64_t own_held = 0;
  if (tenant != tenants_.end()) {
    tenant_held = tenant->second.bytes;
    const auto own = tenant->second.consumers.find(consumer.name);
    if (own != tenant->second.consumers.end()) own_held = own->second;
  }
  const auto lacks = [&](std::uint64_t held, std::uint64_t limit) {
    return bytes > free_of(held, limit);
  };
  const auto shortage = [&](Shortage::Level level, std::uint64_t held, std::uint64_t limit) {
    return std::unexpected(Shortage{.level = level,
                                    .wanted_bytes = bytes,
                                    .free_bytes = free_of(held, limit),
                                    .limit_bytes = limit});
  };
  if (!consumer.tenant.is_host()) {
    if (lacks(own_held, limits_.consumer_bytes_max)) {
      return shortage(Shortage::Level::Consumer, own_held, limits_.consumer_bytes_max);
    }
    const TenantLimits::Limit limit = locked_limit_of(consumer.tenant);
    if (lacks(tenant_held, limit.bytes_max)) {
      auto missing = shortage(Shortage::Level::Tenant, tenant_held, limit.bytes_max);
      missing.error().limited_by = limit.set_by;
      return missing;
    }
  }
  const bool is_assured =
      !consumer.tenant.is_host() && !lacks(tenant_held, limits_.tenant_bytes_assured);
  if (!is_assured && !consumer.may_use_kept) {
    const std::uint64_t usual_max = free_of(limits_.kept_bytes, limits_.host_bytes_max);
    const std::uint64_t taken = usual_bytes_ + (aside == Aside::Left ? aside_bytes_ : 0);
    if (lacks(taken, usual_max)) return shortage(Shortage::Level::Host, taken, usual_max);
  }
  if (!is_assured && lacks(held_bytes_, limits_.host_bytes_max)) {
    return shortage(Shortage::Level::Host, held_bytes_, limits_.host_bytes_max);
  }
  held_bytes_ += bytes;
  if (!consumer.may_use_kept) usual_bytes_ += bytes;
  TenantUse& use = tenants_[consumer.tenant];
  use.bytes += bytes;
  use.consumers[consumer.name] += bytes;
  return {};
}

std::uint64_t Accounts::room_of(const Tenant& tenant, Aside aside) const {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t usual_max = free_of(limits_.kept_bytes, limits_.host_bytes_max);
  const std::uint64_t taken = usual_bytes_ + (aside == Aside::Left ? aside_bytes_ : 0);
  const std::uint64_t of_host =
      std::min(free_of(taken, usual_max), free_of(held_bytes_, limits_.host_bytes_max));
  if (tenant.is_host()) return of_host;
  const auto use = tenants_.find(tenant);
  const std::uint64_t held = use == tenants_.end() ? 0 : use->second.bytes;
  return std::min(free_of(held, locked_limit_of(tenant).bytes_max),
                  std::max(of_host, free_of(held, limits_.tenant_bytes_assured)));
}

void Accounts::limit_tenants(TenantLimits limits) {
  {
    const std::scoped_lock lock(mutex_);
    if (limits == tenant_limits_) return;
    tenant_limits_ = std::move(limits);
  }
  if (on_freed_) on_freed_();
}

TenantLimits::Limit Accounts::limit_of(const Tenant& tenant) const {
  const std::scoped_lock lock(mutex_);
  return locked_limit_of(tenant);
}

// Cluster-scoped objects belong to an administrator: policies are about namespaces.
TenantLimits::Limit Accounts::locked_limit_of(const Tenant& tenant) const {
  TenantLimits::Limit all{.bytes_max = limits_.tenant_bytes_max};
  if (tenant.namespace_name().empty()) return all;
  const auto own = tenant_limits_.namespaces.find(tenant.namespace_name());
  const TenantLimits::Limit& limit =
      own == tenant_limits_.namespaces.end() ? tenant_limits_.others : own->second;
  return limit.bytes_max < all.bytes_max ? limit : all;
}

void Accounts::subtract(const Consumer& consumer, std::uint64_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    held_bytes_ -= bytes;
    if (!consumer.may_use_kept) usual_bytes_ -= bytes;
    const auto tenant = tenants_.find(consumer.tenant);
    const auto own = tenant->second.consumers.find(consumer.name);
    tenant->second.bytes -= bytes;
    own->second -= bytes;
    if (own->second == 0) tenant->second.consumers.erase(own);
    if (tenant->second.bytes == 0) tenants_.erase(tenant);
  }
  if (on_freed_) on_freed_();
}

}  // namespace hangar::budget
