// Follows TenantPolicies and the labels of namespaces, and returns the current rules of
// a namespace.
//
// Guarantees:
//   - No rules are known until is_settled(): users of rules wait for it.
//   - A failed watch changes nothing: the last known policies stay in force. The same holds if the
//     list of policies is answered with 404, until discovery says that the kind does not exist: a
//     proxy or a server that starts may answer 404 for a kind that exists.
//   - A host that may not list policies, or whose cluster does not serve them, settles without
//     policies: then only the host's own settings apply. It logs this once, and keeps retrying.
//   - Namespaces are watched (their metadata only) from the first policy that looks at labels. If
//     that is not allowed, or while a namespace is not known, such a policy limits it and gives it
//     no rights.
// Loop thread, except for the metrics.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/object.h"
#include "tenants/policy_set.h"
#include "tenants/rules.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::tenants {

class Policies {
 public:
  // The references outlive this object.
  struct Parts {
    io::Loop& loop;
    kube::Cache& cache;
    const kube::Client& client;  // For discovery.
    Metrics& metrics;
    Log log;
  };
  explicit Policies(Parts parts);
  Policies(const Policies&) = delete;
  Policies& operator=(const Policies&) = delete;
  ~Policies();

  // Called when the rules of one namespace may have changed or, if the name is empty, those of any
  // namespace: call rules_of() again. Also called when the policies have settled; a listener that
  // is added later is notified only of later changes. Listeners stay as long as this object.
  using Listener = std::function<void(const std::string& namespace_name)>;
  void listen(Listener listener) { listeners_.push_back(std::move(listener)); }

  // Does nothing if it was called before.
  void start();
  void stop();

  // False while the labels of namespaces that a new policy looks at are not known.
  [[nodiscard]] bool is_settled() const { return are_known_ && are_namespaces_known_; }
  // For readiness: the policies were settled at least once.
  [[nodiscard]] bool has_settled() const { return has_settled_; }
  // Never null.
  [[nodiscard]] std::shared_ptr<const Rules> rules_of(const std::string& namespace_name) const;
  // The rules for namespaces that are not known.
  [[nodiscard]] Rules rules_of_unknown() const { return set_.rules_of(nullptr); }
  // The known namespaces; known only if a policy looks at their labels.
  [[nodiscard]] std::vector<std::string> known_namespaces() const;

 private:
  void on_policy(const kube::Delta& delta);
  void on_failed(const Error& error);
  void on_lost();
  void on_list();
  void on_progress();
  // Asks discovery, unless a request is under way. `self` may end before the request does.
  void ask_for_kind();
  static io::Task<void> ask(Policies& self, std::weak_ptr<int> alive, kube::Client client,
                            std::stop_token stop);
  void on_kind_gone();
  void drop_held();
  void follow_namespaces();
  void on_namespaces_failed(const Error& error);
  void changed(const std::string& namespace_name);
  void tell_soon();

  const Parts parts_;
  std::vector<Listener> listeners_;
  PolicySet set_;
  bool are_known_ = false;            // Policies are listed, or cannot be.
  bool are_namespaces_known_ = true;  // The same for namespaces, if they are needed.
  bool has_settled_ = false;
  bool has_warned_ = false;
  bool has_warned_of_namespaces_ = false;
  int not_found_count_ = 0;
  // The cache has lost the kind, and discovery has not confirmed it: policies stay in force.
  bool is_holding_ = false;
  // Policies that stay in force although the cache has lost them.
  std::set<std::string> held_;
  bool is_asking_ = false;
  std::stop_source asking_;
  bool will_tell_ = false;
  mutable std::map<std::string, std::shared_ptr<const Rules>> rules_;
  std::unique_ptr<kube::Cache::Subscription> policies_;
  std::unique_ptr<kube::Cache::Subscription> namespaces_;
  // Shared with the scraping thread.
  std::shared_ptr<std::atomic<std::size_t>> count_;
  std::shared_ptr<std::atomic<bool>> is_readable_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // For posted callbacks.
};

}  // namespace hangar::tenants
