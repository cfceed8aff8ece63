#include "gateway/decisions.h"

#include "base/time.h"
#include "gateway/caller.h"
#include "gateway/limits.h"
#include "gateway/read_scope.h"
#include "kube/client.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {

namespace {

// Longer than any name and usual selector.
constexpr std::size_t kAttributesBytesMax = 1024;
// A person with some dozens of groups.
constexpr std::size_t kIdentityBytesMax = 4096;

// The room of one text: very many empty ones take memory, too.
std::size_t room_of(const std::string& text) {
  return sizeof(std::string) + text.size();
}

std::size_t room_of(const std::vector<std::string>& texts) {
  std::size_t bytes = 0;
  for (const std::string& text : texts)
    bytes += room_of(text);
  return bytes;
}

std::size_t room_of(const kube::Identity& identity) {
  std::size_t bytes = identity.user.size() + room_of(identity.groups);
  for (const auto& [key, values] : identity.extra)
    bytes += room_of(key) + room_of(values);
  return bytes;
}

}  // namespace

bool is_worth_remembering(const Question& question) {
  const Attributes& attributes = question.attributes;
  return attributes.group.size() + attributes.version.size() + attributes.resource.size() +
                 attributes.namespace_.size() + attributes.name.size() +
                 attributes.label_selector.size() + attributes.field_selector.size() <=
             kAttributesBytesMax &&
         room_of(question.identity) <= kIdentityBytesMax;
}

DecisionPtr Decisions::find(const Question& question, Instant now) const {
  const auto of_tenant = by_tenant_.find(tenant_of(question.identity));
  if (of_tenant == by_tenant_.end()) return nullptr;
  const auto known = of_tenant->second.find(question);
  if (known == of_tenant->second.end()) return nullptr;
  const DecisionPtr& decision = known->second;
  return decision->state == Decision::State::Pending || now < decision->until ? decision : nullptr;
}

bool Decisions::keep(const Question& question, DecisionPtr decision, Instant now) {
  OfTenant& of_tenant = by_tenant_[tenant_of(question.identity)];
  const auto is_full = [&] {
    return of_tenant.size() >= kDecisionsPerTenantMax || size_ >= limits::kGatewayDecisionsMax;
  };
  const auto known = of_tenant.find(question);
  if (known != of_tenant.end()) {
    known->second = std::move(decision);
    return true;
  }
  if (is_full()) {
    erase_if(of_tenant, [now](const Decision& one) { return now >= one.until; });
  }
  // Still full: drop the tenant's valid decisions too. Repeating a review is better than growing.
  if (is_full()) {
    erase_if(of_tenant, [](const Decision& /*one*/) { return true; });
  }
  if (is_full()) return false;
  of_tenant.emplace(question, std::move(decision));
  ++size_;
  return true;
}

void Decisions::drop(const Question& question, const DecisionPtr& decision) {
  const auto of_tenant = by_tenant_.find(tenant_of(question.identity));
  if (of_tenant == by_tenant_.end()) return;
  const auto known = of_tenant->second.find(question);
  if (known == of_tenant->second.end() || known->second != decision) return;
  of_tenant->second.erase(known);
  --size_;
}

void Decisions::forget_old(Instant now) {
  for (auto& [tenant, of_tenant] : by_tenant_)
    erase_if(of_tenant, [now](const Decision& one) { return now >= one.until; });
  std::erase_if(by_tenant_, [](const auto& entry) { return entry.second.empty(); });
}

// Pending decisions stay: a task waits for them.
void Decisions::erase_if(OfTenant& of_tenant, const auto& is_dropped) {
  size_ -= std::erase_if(of_tenant, [&is_dropped](const auto& entry) {
    return entry.second->state != Decision::State::Pending && is_dropped(*entry.second);
  });
}

}  // namespace hangar::gateway
