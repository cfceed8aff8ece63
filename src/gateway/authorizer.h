// May this identity see that? Asked of the API server, so that its own authorizers decide.
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

// Answers are believed for limits::kGatewayDecisionAge, and forgotten soon after; who asks while
// the same is being asked waits for that answer. Loop thread only.
class Authorizer {
 public:
  // `client` asks as the host.
  explicit Authorizer(const kube::Client& client);

  // Nothing when the identity may not read that. Errors: Denied when the host may not ask;
  // Unavailable; Cancelled. We ourselves (an identity with an empty user) may everything that the
  // host may.
  [[nodiscard]] io::Task<Result<std::optional<AuthorizedScope>>> authorize(kube::Identity identity,
                                                                           ReadScope scope,
                                                                           std::stop_token stop);
  // The same question about what was authorised before.
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
  // What is old by then; on its own, as often as there is something left.
  static void forget_later(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace hangar::gateway
