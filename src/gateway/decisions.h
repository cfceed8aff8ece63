// The answers of the API server's authorisation, as long as they are valid.
//
// Guests choose the texts of the questions. So each tenant has its own quota: a tenant with very
// many questions makes the API server repeat only that tenant's answers.
#pragma once

#include "base/time.h"
#include "gateway/read_scope.h"
#include "io/event.h"
#include "io/loop.h"
#include "kube/client.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace hangar::gateway {

// Decisions of one namespace. A question has at most 5 KiB (is_worth_remembering), or, while it is
// pending, as much as a request may have; the operators of a namespace ask a few dozen.
inline constexpr std::size_t kDecisionsPerTenantMax = 500;

struct Question {
  kube::Identity identity;
  Attributes attributes;
  auto operator<=>(const Question&) const = default;
};

// Guests choose the texts of attributes, and whoever reaches the webhooks those of identities. The
// answer to a question that is longer than any usual one is shared while it is under way and not
// kept, so that the kept decisions stay small.
[[nodiscard]] bool is_worth_remembering(const Question& question);

struct Decision {
  explicit Decision(io::Loop& loop) : decided(loop) {}
  enum class State : std::uint8_t { Pending, Decided, Failed };
  State state = State::Pending;
  bool is_allowed = false;  // Once decided.
  Instant until;
  io::Event decided;
};
using DecisionPtr = std::shared_ptr<Decision>;

class Decisions {
 public:
  // Null when there is no decision, or when it has expired.
  [[nodiscard]] DecisionPtr find(const Question& question, Instant now) const;
  // Replaces an earlier decision. False when there is no room: then the decision is not kept.
  bool keep(const Question& question, DecisionPtr decision, Instant now);
  // Removes that decision, but not one that has replaced it.
  void drop(const Question& question, const DecisionPtr& decision);
  void forget_old(Instant now);

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  using OfTenant = std::map<Question, DecisionPtr>;

  void erase_if(OfTenant& of_tenant, const auto& is_dropped);

  std::map<std::string, OfTenant> by_tenant_;
  std::size_t size_ = 0;
};

}  // namespace hangar::gateway
