// Asks the API server whether an identity may read something, so that the cluster's own
// authorizers decide.
#pragma once

#include "base/result.h"
#include "gateway/decisions.h"
#include "gateway/read_scope.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/client.h"

#include <memory>
#include <optional>
#include <stop_token>

namespace hangar::gateway {

// An answer is valid for limits::kGatewayDecisionAge, and forgotten soon after. Callers with a
// question that is already being asked wait for its answer. Loop thread only.
class Authorizer {
 public:
  // `client` sends the reviews with the host's rights.
  explicit Authorizer(const kube::Client& client);

  // Nothing when the identity may not read the scope. Errors: Denied when the host may not create
  // reviews; Unavailable; Cancelled. An identity with an empty user is the host itself; it is
  // allowed without a review, since the host's rights bound it.
  [[nodiscard]] io::Task<Result<std::optional<AuthorizedScope>>> authorize(kube::Identity identity,
                                                                           ReadScope scope,
                                                                           std::stop_token stop);
  // The same question, for a scope that was authorised before.
  [[nodiscard]] io::Task<Result<bool>> allows(kube::Identity identity, Attributes attributes,
                                              std::stop_token stop);

 private:
  struct State {
    kube::Client client;
    Decisions decisions = {};
    io::Loop::Timer care = {};
    bool is_cared_for = false;
  };

  static io::Task<Result<bool>> decide(std::shared_ptr<State> state, Question question,
                                       std::stop_token stop);
  // Drops expired decisions later. Rearms itself as long as any decision is left.
  static void forget_later(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace hangar::gateway
