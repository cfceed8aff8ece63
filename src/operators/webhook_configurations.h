// The configurations of the webhooks that operators answer: keeps them pointed at this host.
//
// A configuration concerns the whole cluster, and an Operator belongs to a namespace. So the host
// reads and writes each with the rights of the operator's ServiceAccount, which has them or not; it
// watches their metadata with its own, only to learn when to look again.
// Loop thread only.
#pragma once

#include "admission/webhooks.h"
#include "base/result.h"
#include "base/time.h"
#include "io/task.h"
#include "kube/object.h"
#include "operators/operator.h"
#include "reconcile/dependents.h"
#include "reconcile/platform.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::operators {

class WebhookConfigurations {
 public:
  // All of it outlives this. `changed`: keep() should be called again for that operator.
  WebhookConfigurations(const reconcile::Platform& platform, const admission::Webhooks& webhooks,
                        std::function<void(const kube::ObjectKey& key)> changed);
  WebhookConfigurations(const WebhookConfigurations&) = delete;
  WebhookConfigurations& operator=(const WebhookConfigurations&) = delete;

  // Looks at the configurations of an operator if something has changed since it did so last, and
  // corrects them. One call at a time for each operator.
  [[nodiscard]] io::Task<void> keep(const Operator& spec, std::stop_token stop);
  // Looks after them no longer; they stay as they are.
  void release(const kube::ObjectKey& key);
  void clear();
  // The host is reached in another way, or has another authority.
  void on_address_change();

  // Why they are not as they must be; nothing if they are, or if the operator has none.
  [[nodiscard]] std::optional<Error> problem(const kube::ObjectKey& key) const;
  // When to call keep() again, unless `changed` is called before.
  [[nodiscard]] std::optional<Duration> again_in(const kube::ObjectKey& key, Instant now) const;
  // Whether the operator names any.
  [[nodiscard]] bool has_any(const kube::ObjectKey& key) const { return kept_.contains(key); }
  // Whether the API server sends conversions to this path of the operator's guest.
  [[nodiscard]] bool converts_at(const kube::ObjectKey& key, std::string_view path) const;

 private:
  struct Kept {
    std::string uid;  // Of the Operator, as it was kept last.
    std::int64_t generation = 0;
    bool is_due = true;
    std::optional<Error> problem;
    std::optional<Instant> again;
    std::map<WebhookSource, Instant> written;  // When the host changed them last.
    std::set<std::string, std::less<>> conversions;
  };

  void watch(const Operator& spec);
  // The paths in the guest.
  [[nodiscard]] io::Task<Result<std::vector<std::string>>> keep_one(const Operator& spec,
                                                                    WebhookSource source,
                                                                    std::stop_token stop);

  const reconcile::Platform& platform_;
  const admission::Webhooks& webhooks_;
  const std::function<void(const kube::ObjectKey& key)> changed_;
  std::map<kube::ObjectKey, Kept> kept_;
  reconcile::Dependents<kube::ObjectKey> watched_;
};

}  // namespace hangar::operators
