// What the API server's authorisation has answered, for as long as it is believed.
//
// The questions are made of texts that guests choose. So each tenant has room of its own: one that
// asks about very many things makes the server answer its own questions again, and nobody else's.
// Loop thread; no I/O.
#pragma once

#include "base/time.h"
#include "gateway/read_scope.h"
#include "io/event.h"
#include "io/loop.h"
#include "kube/client.h"

#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace hangar::gateway {

// Of one namespace at a time; a question has 1 KiB at most. Its operators ask about some dozens.
inline constexpr std::size_t kDecisionsPerTenantMax = 500;

struct Question {
  kube::Identity identity;
  Attributes attributes;
  auto operator<=>(const Question&) const = default;
};

struct Decision {
  explicit Decision(io::Loop& loop) : decided(loop) {}
  bool is_allowed = false;
  bool is_pending = true;
  Instant until;
  io::Event decided;
};
using DecisionPtr = std::shared_ptr<Decision>;

class Decisions {
 public:
  // Null when there is none, or none that is still believed.
  [[nodiscard]] DecisionPtr find(const Question& question, Instant now) const;
  // In place of what there was. False when there is no room for it: then it is not kept.
  bool keep(const Question& question, DecisionPtr decision, Instant now);
  // Only that one.
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
