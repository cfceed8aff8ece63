// With whose rights a flight's lookups are answered and its release is carried out.
//
// A service account that the Airway names, else the one that the host names for all Airways
// (--airway-service-account), else the host itself, as the original has it. What the host keeps for
// itself (the history, statuses, finalizers, the kind) it does as itself in any case.
#pragma once

#include "base/result.h"
#include "gateway/authorizer.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "reconcile/acting_rights.h"

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

// On an Airway: "name", of the namespace of each instance, or "namespace/name".
inline constexpr std::string_view kServiceAccountAnnotation = "hangar.dev/service-account";

struct Acting {
  std::string namespace_;  // Empty: the instance's.
  std::string name;        // Empty: the host itself.

  bool operator==(const Acting&) const = default;
};
// InvalidInput says what would be right.
[[nodiscard]] Result<Acting> parse_acting(std::string_view text);
// `otherwise`: where the Airway says nothing.
[[nodiscard]] Result<Acting> acting_of(const json::Value& airway, const Acting& otherwise);

// A service account.
struct Account {
  std::string namespace_;
  std::string name;

  bool operator==(const Account&) const = default;
  [[nodiscard]] kube::Identity identity() const;
  // What an error that it was refused with is told with.
  [[nodiscard]] Error advise(const Error& denied) const;
};

// As whom a flight works. That it is the host has to be said by name: nothing that is empty or
// missing leads there.
class Actor {
 public:
  [[nodiscard]] static Actor host() { return Actor(std::nullopt); }
  // Requires a name and a namespace.
  [[nodiscard]] static Actor account(Account account);

  bool operator==(const Actor&) const = default;
  // Null: the host itself.
  [[nodiscard]] const Account* account() const { return account_ ? &*account_ : nullptr; }
  // Requests that are made as it. `host`: those of the host.
  [[nodiscard]] kube::Client client(const kube::Client& host) const;
  // Whether this host may act as it: ActingRights::check(); the host may act as itself.
  [[nodiscard]] io::Task<Result<>> check(reconcile::ActingRights& rights,
                                         std::stop_token stop) const;
  // As Account::advise(); of the host as it is.
  [[nodiscard]] Error advise(const Error& denied) const;

 private:
  explicit Actor(std::optional<Account> account) : account_(std::move(account)) {}

  std::optional<Account> account_;
};
// `namespace_`: the instance's. InvalidInput for one without where one is needed.
[[nodiscard]] Result<Actor> actor_for(const Acting& acting, const std::string& namespace_);

// What a flight may be shown is asked of the API server for an identity.
struct LookupRights {
  gateway::Authorizer& authorizer;
  kube::Identity identity;
};

}  // namespace hangar::airways
