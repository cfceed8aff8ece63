#include "gateway/authorizer.h"

#include "base/result.h"
#include "budget/consumer.h"
#include "gateway/caller.h"
#include "gateway/decisions.h"
#include "gateway/limits.h"
#include "gateway/read_scope.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::gateway {

namespace {

constexpr const char* kReviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

json::Value review_of(const kube::Identity& identity, const Attributes& attributes) {
  json::Value review =
      json::Object{{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}};
  json::set_at(review, {"spec", "user"}, json::String(identity.user));
  // With the group that the API server adds to an impersonated request.
  constexpr std::string_view kAuthenticated = "system:authenticated";
  json::Array groups;
  for (const std::string& group : identity.groups)
    groups.emplace_back(json::String(group));
  if (identity.user != "system:anonymous" &&
      std::ranges::find(identity.groups, kAuthenticated) == identity.groups.end()) {
    groups.emplace_back(json::String(kAuthenticated));
  }
  json::set_at(review, {"spec", "groups"}, std::move(groups));
  for (const auto& [key, values] : identity.extra) {
    json::set_at(review, {"spec", "extra", key}, json::Array(values.begin(), values.end()));
  }
  const auto set = [&review](json::Path path, const std::string& text) {
    if (!text.empty()) json::set_at(review, path, json::String(text));
  };
  set({"spec", "resourceAttributes", "verb"}, attributes.verb);
  set({"spec", "resourceAttributes", "group"}, attributes.group);
  set({"spec", "resourceAttributes", "version"}, attributes.version);
  set({"spec", "resourceAttributes", "resource"}, attributes.resource);
  set({"spec", "resourceAttributes", "namespace"}, attributes.namespace_);
  set({"spec", "resourceAttributes", "name"}, attributes.name);
  set({"spec", "resourceAttributes", "labelSelector", "rawSelector"}, attributes.label_selector);
  set({"spec", "resourceAttributes", "fieldSelector", "rawSelector"}, attributes.field_selector);
  return review;
}

}  // namespace

Authorizer::Authorizer(const kube::Client& client) : state_(std::make_shared<State>(client)) {}

Authorizer::State::State(const kube::Client& client_in)
    : client(client_in),
      reviews(client_in.loop(), {.slots = kReviewsMax,
                                 .host_slots = 1,
                                 .slots_per_tenant_max = kReviewsPerTenantMax,
                                 .waiting_per_tenant_max = kReviewsWaitingPerTenantMax}) {}

io::Task<Result<std::optional<AuthorizedScope>>> Authorizer::authorize(kube::Identity identity,
                                                                       ReadScope scope,
                                                                       std::stop_token stop) {
  budget::Consumer asker = consumer_of(identity);
  const bool is_allowed = HANGAR_CO_TRY(co_await decide(
      state_, {std::move(identity), scope.attributes()}, std::move(asker), std::move(stop)));
  std::optional<AuthorizedScope> authorized;
  if (is_allowed) authorized = AuthorizedScope(std::move(scope));
  co_return authorized;
}

io::Task<Result<bool>> Authorizer::allows(kube::Identity identity, Attributes attributes,
                                          std::stop_token stop) {
  return decide(state_, {std::move(identity), std::move(attributes)},
                {.tenant = budget::Tenant::host(), .name = "watches"}, std::move(stop));
}

io::Task<Result<bool>> Authorizer::decide(std::shared_ptr<State> state, Question question,
                                          budget::Consumer asker, std::stop_token stop) {
  if (question.identity.user.empty()) co_return true;
  while (const DecisionPtr known = state->decisions.find(question, io::Loop::now())) {
    if (known->state == Decision::State::Decided) co_return known->is_allowed;
    if (asker.tenant.is_host()) break;
    HANGAR_CO_TRY(co_await known->decided.wait(stop));
    if (known->state == Decision::State::Decided) co_return known->is_allowed;
    // That review failed, so this task asks.
  }
  const auto decision = std::make_shared<Decision>(state->client.loop());
  // If there is no room, no other task waits for this decision, and the next one asks again.
  (void)state->decisions.keep(question, decision, io::Loop::now());
  Result<bool> answer = co_await ask(state, question, std::move(asker), stop);
  decision->state = answer ? Decision::State::Decided : Decision::State::Failed;
  decision->until = io::Loop::now() + limits::kGatewayDecisionAge;
  decision->is_allowed = answer && *answer;
  if (!answer || !is_worth_remembering(question)) {
    state->decisions.drop(question, decision);
  }
  decision->decided.notify_all();
  forget_later(state);
  co_return answer;
}

io::Task<Result<bool>> Authorizer::ask(std::shared_ptr<State> state, Question question,
                                       budget::Consumer asker, std::stop_token stop) {
  const auto slot = co_await state->reviews.acquire(std::move(asker), {}, stop);
  if (!slot) co_return std::unexpected(slot.error());
  const json::Value answer = HANGAR_CO_TRY(co_await state->client.post_path(
      kReviews, review_of(question.identity, question.attributes), std::move(stop)));
  co_return json::bool_at(answer, {"status", "allowed"});
}

void Authorizer::forget_later(const std::shared_ptr<State>& state) {
  if (state->decisions.size() == 0 || std::exchange(state->is_cared_for, true)) return;
  const auto forget = [weak = std::weak_ptr(state)] {
    const auto alive = weak.lock();
    if (!alive) return;
    alive->is_cared_for = false;
    alive->decisions.forget_old(io::Loop::now());
    forget_later(alive);
  };
  state->care = state->client.loop().after(limits::kGatewayDecisionAge, forget);
}

}  // namespace hangar::gateway
