#include "airways/acting.h"

#include "base/assert.h"
#include "base/dns_name.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"
#include "reconcile/acting_rights.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

Result<Acting> parse_acting(std::string_view text) {
  const std::size_t slash = text.find('/');
  Acting acting{.namespace_ = {}, .name = std::string(text)};
  if (slash != std::string_view::npos) {
    acting = {.namespace_ = std::string(text.substr(0, slash)),
              .name = std::string(text.substr(slash + 1))};
  }
  const bool is_namespace = slash == std::string_view::npos || is_dns_subdomain(acting.namespace_);
  if (!is_namespace || !is_dns_subdomain(acting.name)) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" must be a service account: its name, in the namespace of each "
                            "instance, or namespace/name",
                            text));
  }
  return acting;
}

Result<Acting> acting_of(const json::Value& airway, const Acting& otherwise) {
  const std::string_view text = kube::annotation_of(airway, kServiceAccountAnnotation);
  if (text.empty()) return otherwise;
  Result<Acting> acting = parse_acting(text);
  if (!acting) {
    return std::unexpected(std::move(acting).error().in(
        fmt::format("metadata.annotations[{}]", kServiceAccountAnnotation)));
  }
  return acting;
}

kube::Identity Account::identity() const {
  return kube::service_account(namespace_, name);
}

Error Account::advise(const Error& denied) const {
  const bool is_said = denied.reason() == reconcile::kNamespaceNotAllowed;
  if (denied.kind() != ErrorKind::Denied || is_said) return denied;
  return Error(denied.kind(),
               fmt::format("{}; the flight acts as the ServiceAccount {} of namespace {}: give it "
                           "that right with a Role and a RoleBinding",
                           denied.message(), name, namespace_));
}

Actor Actor::account(Account account) {
  HANGAR_ASSERT(!account.namespace_.empty() && !account.name.empty(),
                "a service account has a name and a namespace");
  return Actor(std::move(account));
}

kube::Client Actor::client(const kube::Client& host) const {
  return account_ ? host.as(account_->identity()) : host;
}

io::Task<Result<>> Actor::check(reconcile::ActingRights& rights, std::stop_token stop) const {
  if (!account_) co_return Result<>();
  co_return co_await rights.check(account_->namespace_, account_->name, std::move(stop));
}

Error Actor::advise(const Error& denied) const {
  return account_ ? account_->advise(denied) : denied;
}

Result<Actor> actor_for(const Acting& acting, const std::string& namespace_) {
  if (acting.name.empty()) return Actor::host();
  if (!acting.namespace_.empty()) {
    return Actor::account({.namespace_ = acting.namespace_, .name = acting.name});
  }
  if (namespace_.empty()) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("the flight is to act as the ServiceAccount {} of the instance's "
                            "namespace, and the instance has none: name it as namespace/{} in the "
                            "Airway's annotation {}",
                            acting.name, acting.name, kServiceAccountAnnotation));
  }
  return Actor::account({.namespace_ = namespace_, .name = acting.name});
}

}  // namespace hangar::airways
