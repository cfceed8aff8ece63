// The identity whose rights answer a flight's lookups and carry out its release.
//
// It is the service account that the Airway names, else the one that the host names for all Airways
// (--airway-service-account), else the host itself, as in yoke. For its own objects (the history,
// statuses, finalizers, the CRD), the host always uses its own rights.
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

// An annotation of Airways and Flights: "name", in the namespace of each instance, or
// "namespace/name".
inline constexpr std::string_view kServiceAccountAnnotation = "hangar.dev/service-account";

struct Acting {
  std::string namespace_;  // Empty: the instance's.
  std::string name;        // Empty: the host itself.

  bool operator==(const Acting&) const = default;
};
// InvalidInput says what is expected.
[[nodiscard]] Result<Acting> parse_acting(std::string_view text);
// `otherwise`: the result if there is no annotation.
[[nodiscard]] Result<Acting> acting_of(const json::Value& airway, const Acting& otherwise);

// A service account.
struct Account {
  std::string namespace_;
  std::string name;

  bool operator==(const Account&) const = default;
  [[nodiscard]] kube::Identity identity() const;
  // Adds to a Denied error how to give the account the right. Other errors stay as they are.
  [[nodiscard]] Error advise(const Error& denied) const;
};

// The identity that a flight acts as. The host has to be named explicitly: an empty or missing name
// never means the host.
class Actor {
 public:
  [[nodiscard]] static Actor host() { return Actor(std::nullopt); }
  // Requires a name and a namespace.
  [[nodiscard]] static Actor account(Account account);

  bool operator==(const Actor&) const = default;
  // Null: the host itself.
  [[nodiscard]] const Account* account() const { return account_ ? &*account_ : nullptr; }
  // A client that sends requests as this identity. `host`: the host's own client.
  [[nodiscard]] kube::Client client(const kube::Client& host) const;
  // Whether the host may act as this account (ActingRights::check()); it may act as itself.
  [[nodiscard]] io::Task<Result<>> check(reconcile::ActingRights& rights,
                                         std::stop_token stop) const;
  // Like Account::advise(); errors of the host stay as they are.
  [[nodiscard]] Error advise(const Error& denied) const;

 private:
  explicit Actor(std::optional<Account> account) : account_(std::move(account)) {}

  std::optional<Account> account_;
};
// `namespace_`: the instance's. InvalidInput if it is empty and `acting` needs it.
[[nodiscard]] Result<Actor> actor_for(const Acting& acting, const std::string& namespace_);

// Tells whether a flight may see an object, by asking the API server about an identity.
struct LookupRights {
  gateway::Authorizer& authorizer;
  kube::Identity identity;
};

}  // namespace hangar::airways
