// Whether the API server lets this process act as a service account, by impersonation.
//
// The right is granted per namespace (`hangar tenant allow`). A check before the work turns a
// missing right into one condition that names the remedy, instead of an error of each request. The
// check sends a request under the service account's identity, so its answer is right whatever kind
// of impersonation the server supports and however the rights were granted. Loop thread only.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/task.h"
#include "kube/client.h"

#include <chrono>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::reconcile {

// The reason of the errors below, and of the conditions that report them.
inline constexpr std::string_view kNamespaceNotAllowed = "NamespaceNotAllowed";

// How soon to check again after such an error.
inline constexpr std::chrono::seconds kNotAllowedRecheck{15};

// Denied: the process lacks a right in that namespace. `cause` is the API server's own sentence.
[[nodiscard]] Error not_allowed_in(std::string_view namespace_, std::string_view cause);

// Judges the API server's answer to a request under `identity`: success, Denied with the reason
// kNamespaceNotAllowed, or the error unchanged if it says nothing about impersonation.
[[nodiscard]] Result<> judge_impersonation(const kube::Identity& identity,
                                           std::string_view namespace_, const Result<>& answer);

class ActingRights {
 public:
  explicit ActingRights(const kube::Client& client) : client_(client) {}
  ActingRights(const ActingRights&) = delete;
  ActingRights& operator=(const ActingRights&) = delete;

  // Errors as judge_impersonation has them. An answer is cached for a while.
  [[nodiscard]] io::Task<Result<>> check(std::string namespace_, std::string service_account,
                                         std::stop_token stop);

 private:
  struct Known {
    Result<> verdict;
    Instant until;
  };

  void make_room(Instant now);

  const kube::Client client_;
  std::map<std::pair<std::string, std::string>, Known> known_;  // By namespace and service account.
};

}  // namespace hangar::reconcile
