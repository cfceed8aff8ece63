// Asks the API server whether an identity may read something, so that the cluster's own
// authorizers decide.
#pragma once

#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "gateway/decisions.h"
#include "gateway/limits.h"
#include "gateway/read_scope.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/client.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>

namespace hangar::gateway {

// Concurrent reviews at the API server: of one tenant, and of all tenants. A review takes a
// millisecond, and the host sends its own requests over the same connections.
inline constexpr std::size_t kReviewsPerTenantMax = 8;
inline constexpr std::size_t kReviewsMax = 32;
// Twice the number of requests that one guest may have open.
inline constexpr std::size_t kReviewsWaitingPerTenantMax =
    std::size_t{2} * limits::kGatewayRequestsOpenMax;

// An answer is valid for limits::kGatewayDecisionAge and is dropped soon after. Callers with a
// question that is already under review share its answer. Reviews have their own slots, shared
// fairly between tenants, so that a request that holds a slot at the API server never waits behind
// itself. Loop thread only.
class Authorizer {
 public:
  // `client` sends the reviews with the host's rights.
  explicit Authorizer(const kube::Client& client);

  // Nothing when the identity may not read the scope. Errors: Denied when the host may not create
  // reviews; Unavailable; Cancelled; LimitExceeded when kReviewsWaitingPerTenantMax reviews of the
  // tenant wait already. An identity with an empty user is the host itself; it is
  // allowed without a review, since the host's rights bound it.
  [[nodiscard]] io::Task<Result<std::optional<AuthorizedScope>>> authorize(kube::Identity identity,
                                                                           ReadScope scope,
                                                                           std::stop_token stop);
  // Authorises again a scope that was authorised before. The host starts this itself, so it takes a
  // slot of the host and does not wait for reviews of the tenant.
  [[nodiscard]] io::Task<Result<bool>> allows(kube::Identity identity, Attributes attributes,
                                              std::stop_token stop);

  [[nodiscard]] std::size_t reviews_under_way(const budget::Tenant& tenant) const {
    return state_->reviews.held_count(tenant);
  }
  [[nodiscard]] std::size_t reviews_waiting(const budget::Tenant& tenant) const {
    return state_->reviews.waiting_count(tenant);
  }

 private:
  struct State {
    explicit State(const kube::Client& client_in);

    kube::Client client;
    Decisions decisions;
    budget::FairSlots reviews;
    io::Loop::Timer care;
    bool is_cared_for = false;
  };

  static io::Task<Result<bool>> decide(std::shared_ptr<State> state, Question question,
                                       budget::Consumer asker, std::stop_token stop);
  static io::Task<Result<bool>> ask(std::shared_ptr<State> state, Question question,
                                    budget::Consumer asker, std::stop_token stop);
  // Drops expired decisions later. Rearms itself as long as any decision is left.
  static void forget_later(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace hangar::gateway
