// May this identity see that? Asked of the API server, so that its own authorizers decide.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/client.h"

#include <cstddef>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

namespace hangar::gateway {

// As in authorization.k8s.io/v1 ResourceAttributes.
struct Attributes {
  std::string verb;
  std::string group;
  std::string version;
  std::string resource;
  std::string namespace_;
  std::string name;
  std::string label_selector;  // As the request has them.
  std::string field_selector;

  auto operator<=>(const Attributes&) const = default;
};

// Answers are believed for limits::kGatewayDecisionAge, and forgotten soon after; who asks while
// the same is being asked waits for that answer. Loop thread only.
class Authorizer {
 public:
  // `client` asks as the host.
  explicit Authorizer(const kube::Client& client);

  // Errors: Denied when the host may not ask; Unavailable; Cancelled. We ourselves (an identity
  // with an empty user) may everything that the host may.
  [[nodiscard]] io::Task<Result<bool>> allows(kube::Identity identity, Attributes attributes,
                                              std::stop_token stop);

 private:
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
  struct State {
    kube::Client client;
    std::map<Question, DecisionPtr> decisions = {};
    io::Loop::Timer care = {};
    bool is_cared_for = false;
  };

  static io::Task<Result<bool>> decide(std::shared_ptr<State> state, Question question,
                                       std::stop_token stop);
  // What is old by then; on its own, as often as there is something left.
  static void forget_later(const std::shared_ptr<State>& state);
  static void forget_old(State& state);
  static void make_room(State& state);

  std::shared_ptr<State> state_;
};

}  // namespace hangar::gateway
