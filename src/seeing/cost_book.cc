#include "seeing/cost_book.h"

#include "base/time.h"
#include "recorder/record.h"
#include "seeing/cost.h"
#include "seeing/limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::seeing {

namespace {

std::uint64_t for_time(std::uint64_t bytes, Duration passed) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(passed).count();
  constexpr std::uint64_t kPerSecond = 1000;
  return bytes * static_cast<std::uint64_t>(std::max<std::int64_t>(milliseconds, 0)) / kPerSecond;
}

// `part` of `whole`, when all parts together are `sum`.
std::uint64_t scaled(std::uint64_t part, std::uint64_t sum, std::uint64_t whole) {
  if (sum <= whole) return part;
  return static_cast<std::uint64_t>(static_cast<double>(part) * static_cast<double>(whole) /
                                    static_cast<double>(sum));
}

std::uint64_t sum_of(const CostBook::PerNamespace& bytes) {
  std::uint64_t sum = 0;
  for (const auto& [name, one] : bytes)
    sum += one;
  return sum;
}

std::string_view label_of(std::string_view namespace_) {
  return namespace_.empty() ? kClusterRow : namespace_;
}

std::uint64_t difference(std::uint64_t all, std::uint64_t part) {
  return all - std::min(all, part);
}

}  // namespace

CostBook::Account& CostBook::account_of(std::string_view namespace_) {
  const auto found = accounts_.find(namespace_);
  if (found != accounts_.end()) return found->second;
  if (row_count_ >= kCostRowsMax) return accounts_[std::string(kOthersRow)];
  ++row_count_;
  return accounts_[std::string(namespace_)];
}

Cost& CostBook::cost_of(std::string_view namespace_, std::string_view module) {
  Account& account = account_of(namespace_);
  if (module.empty()) return account.other;
  const auto found = account.modules.find(module);
  if (found != account.modules.end()) return found->second;
  if (row_count_ >= kCostRowsMax || account.modules.size() >= kCostModulesMax) {
    return account.other;
  }
  ++row_count_;
  return account.modules[std::string(module)];
}

Cost& CostBook::pending_of(const recorder::Guest& guest) {
  const GuestName name(guest.contract, guest.namespace_, guest.name);
  const auto found = pending_.find(name);
  if (found != pending_.end()) return found->second;
  if (pending_.size() >= kCostPendingMax) return account_of(label_of(guest.namespace_)).other;
  return pending_[name];
}

void CostBook::on_turn(const recorder::Turn& turn) {
  Cost cost{.cpu = turn.cpu, .turns = 1};
  const auto pending =
      pending_.find(GuestName(turn.guest.contract, turn.guest.namespace_, turn.guest.name));
  if (pending != pending_.end()) {
    cost += pending->second;
    pending_.erase(pending);
  }
  cost_of(label_of(turn.guest.namespace_), turn.module) += cost;
}

void CostBook::on_asked(const recorder::Asked& asked, std::string_view module) {
  Cost& cost =
      module.empty() ? pending_of(asked.guest) : cost_of(label_of(asked.guest.namespace_), module);
  ++cost.requests;
  if (recorder::is_write(asked.verb)) cost.written_bytes += asked.bytes;
}

void CostBook::on_answered(const recorder::Answered& answered, std::string_view module) {
  Cost& cost = module.empty() ? pending_of(answered.guest)
                              : cost_of(label_of(answered.guest.namespace_), module);
  cost.read_bytes += answered.bytes;
}

void CostBook::look(Look look, Duration passed) {
  std::uint64_t held = sum_of(look.other_memory);
  for (const Look::Guests& guests : look.guests)
    held += guests.memory_bytes;
  const std::uint64_t shares = sum_of(look.cache);
  // The cache is resident, too; its unused part belongs to the host.
  look.cache_bytes = std::min(look.cache_bytes, look.resident_bytes);
  const std::uint64_t for_guests = look.resident_bytes - look.cache_bytes;

  for (const Look::Guests& guests : look.guests) {
    Cost& cost = cost_of(guests.namespace_, guests.module);
    cost.memory_byte_seconds += for_time(scaled(guests.memory_bytes, held, for_guests), passed);
    cost.disk_byte_seconds += for_time(guests.disk_bytes, passed);
  }
  for (const auto& [name, bytes] : look.other_memory)
    account_of(name).other.memory_byte_seconds += for_time(scaled(bytes, held, for_guests), passed);
  for (const auto& [name, bytes] : look.other_disk)
    account_of(name).other.disk_byte_seconds += for_time(bytes, passed);
  for (const auto& [name, bytes] : look.cache)
    account_of(name).other.cache_byte_seconds +=
        for_time(scaled(bytes, shares, look.cache_bytes), passed);
  resident_byte_seconds_ += for_time(look.resident_bytes, passed);
  cache_byte_seconds_ += for_time(look.cache_bytes, passed);
}

Cost CostBook::whole(Duration processes) const {
  return {.cpu = processes,
          .memory_byte_seconds = difference(resident_byte_seconds_, cache_byte_seconds_),
          .cache_byte_seconds = cache_byte_seconds_};
}

std::vector<CostRow> CostBook::rows(const std::map<std::string, Duration>& cpu,
                                    Duration processes) const {
  Accounts accounts = accounts_;
  for (const auto& [name, cost] : pending_)
    accounts[std::string(label_of(std::get<1>(name)))].other += cost;
  for (const auto& [name, used] : cpu) {
    Account& account = accounts[name];
    Duration in_turns{};
    for (const auto& [module, cost] : account.modules)
      in_turns += cost.cpu;
    account.other.cpu += std::max(used - in_turns - account.other.cpu, Duration::zero());
  }
  Cost host = whole(processes);
  std::vector<CostRow> rows;
  for (const auto& [name, account] : accounts) {
    if (account.other != Cost()) rows.push_back({.namespace_ = name, .cost = account.other});
    for (const auto& [module, cost] : account.modules)
      rows.push_back({.namespace_ = name, .module = module, .cost = cost});
  }
  const Cost sum = seeing::sum_of(rows);
  host.cpu = std::max(host.cpu - sum.cpu, Duration::zero());
  host.memory_byte_seconds = difference(host.memory_byte_seconds, sum.memory_byte_seconds);
  host.cache_byte_seconds = difference(host.cache_byte_seconds, sum.cache_byte_seconds);
  rows.push_back({.namespace_ = std::string(kHostRow), .cost = host});
  return rows;
}

}  // namespace hangar::seeing
