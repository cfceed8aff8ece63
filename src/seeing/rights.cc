#include "seeing/rights.h"

#include "base/result.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"
#include "seeing/limits.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::seeing {

std::string missing_right(std::string_view user, std::string_view verb,
                          const kube::Resource& resource, const kube::ObjectKey& key) {
  std::string text =
      fmt::format("user \"{}\" may not {} {}", user, verb, resource.qualified_plural());
  if (!key.name.empty()) text += fmt::format(" \"{}\"", key.name);
  if (!key.namespace_.empty()) return text + fmt::format(" in namespace \"{}\"", key.namespace_);
  return text + (resource.namespaced ? " in all namespaces" : "");
}

io::Task<Result<bool>> Rights::allows(kube::Identity identity, std::string verb,
                                      kube::Resource resource, kube::ObjectKey key,
                                      std::stop_token stop) {
  const Result<bool> allowed = co_await authorizer_.allows(std::move(identity),
                                                           {.verb = std::move(verb),
                                                            .group = std::move(resource.group),
                                                            .version = std::move(resource.version),
                                                            .resource = std::move(resource.plural),
                                                            .namespace_ = std::move(key.namespace_),
                                                            .name = std::move(key.name)},
                                                           std::move(stop));
  if (allowed || allowed.error().kind() != ErrorKind::Denied) co_return allowed;
  // Here the host lacks a right, not the caller.
  co_return fail(ErrorKind::Unavailable,
                 "ask the API server for rights: " + allowed.error().message());
}

io::Task<Result<>> Rights::require(kube::Identity identity, std::string verb,
                                   kube::Resource resource, kube::ObjectKey key,
                                   std::stop_token stop) {
  const bool is_allowed =
      HANGAR_CO_TRY(co_await allows(identity, verb, resource, key, std::move(stop)));
  if (is_allowed) co_return Result<>();
  co_return fail(ErrorKind::Denied, missing_right(identity.user, verb, resource, key));
}

io::Task<Result<std::set<kube::ObjectKey>>> Rights::may_get(kube::Identity identity,
                                                            kube::Resource resource,
                                                            std::set<kube::ObjectKey> keys,
                                                            std::stop_token stop) {
  std::map<std::string, std::set<kube::ObjectKey>> by_namespace;
  for (const kube::ObjectKey& key : keys)
    by_namespace[key.namespace_].insert(key);
  std::set<kube::ObjectKey> shown;
  std::size_t asked = 0;
  for (auto& [namespace_, of_namespace] : by_namespace) {
    // One review for the whole namespace first: many roles allow that.
    if (of_namespace.size() > 1) {
      if (++asked > kReviewsPerAnswerMax) break;
      const bool all = HANGAR_CO_TRY(
          co_await allows(identity, "get", resource, {.namespace_ = namespace_}, stop));
      if (all) {
        shown.merge(of_namespace);
        continue;
      }
    }
    for (const kube::ObjectKey& key : of_namespace) {
      if (++asked > kReviewsPerAnswerMax) break;
      if (HANGAR_CO_TRY(co_await allows(identity, "get", resource, key, stop))) shown.insert(key);
    }
  }
  co_return shown;
}

}  // namespace hangar::seeing
