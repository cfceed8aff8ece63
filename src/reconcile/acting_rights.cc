#include "reconcile/acting_rights.h"

#include "io/loop.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace hangar::reconcile {

namespace {

// Every identity may read this path, its answer is small, and it names no namespace or object.
constexpr const char* kAsked = "/version";

// A withdrawn right is noticed within this time; the API server itself caches its own decisions for
// ten seconds.
constexpr std::chrono::seconds kAllowedFor{60};
// So that several objects of one namespace cause one request.
constexpr std::chrono::seconds kRefusedFor{10};

// An entry takes some 200 bytes.
constexpr std::size_t kKnownMax = 10'000;

}  // namespace

Error not_allowed_in(std::string_view namespace_, std::string_view cause) {
  return Error(ErrorKind::Denied,
               fmt::format("hangar may not act in namespace {}: run hangar tenant allow {} ({})",
                           namespace_, namespace_, cause))
      .with_reason(std::string(kNamespaceNotAllowed));
}

Result<> judge_impersonation(const kube::Identity& identity, std::string_view namespace_,
                             const Result<>& answer) {
  if (answer || answer.error().kind() != ErrorKind::Denied) return answer;
  // The API server names the user that lacks the right. If that is the service account, the
  // impersonation itself was allowed.
  if (answer.error().message().contains(fmt::format("User \"{}\"", identity.user))) return {};
  return std::unexpected(not_allowed_in(namespace_, answer.error().message()));
}

io::Task<Result<>> ActingRights::check(std::string namespace_, std::string service_account,
                                       std::stop_token stop) {
  const auto key = std::pair(namespace_, service_account);
  const auto found = known_.find(key);
  if (found != known_.end() && io::Loop::now() < found->second.until) {
    co_return found->second.verdict;
  }
  const kube::Identity identity = kube::service_account(namespace_, service_account);
  const Result<json::Value> version =
      co_await client_.as(identity).get_path(kAsked, std::move(stop));
  const Result<> answer = version ? Result<>() : std::unexpected(version.error());
  Result<> verdict = judge_impersonation(identity, namespace_, answer);
  // An answer that says nothing about the right is not cached.
  if (!verdict && verdict.error().reason() != kNamespaceNotAllowed) co_return verdict;
  const Instant now = io::Loop::now();
  make_room(now);
  known_.insert_or_assign(
      key, Known{.verdict = verdict, .until = now + (verdict ? kAllowedFor : kRefusedFor)});
  co_return verdict;
}

void ActingRights::make_room(Instant now) {
  if (known_.size() < kKnownMax) return;
  std::erase_if(known_, [now](const auto& entry) { return now >= entry.second.until; });
  if (known_.size() >= kKnownMax) known_.clear();  // Each dropped entry costs one request.
}

}  // namespace hangar::reconcile
