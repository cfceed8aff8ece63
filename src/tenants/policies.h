// Follows TenantPolicies and the labels of namespaces, and says which rules a namespace has now.
//
// Guarantees:
//   - Until is_settled() nothing is known: who depends on rules waits for it.
//   - A watch that fails changes nothing: what was known last counts.
//   - A host that may not list policies, or whose cluster does not serve them, settles without any:
//     the host's own settings are all that counts then. It says so once, and goes on trying.
//   - Namespaces are watched (their metadata only) from the first policy that looks at labels.
//   Where
//     that is not allowed, or a namespace is not known yet, such a policy counts for it.
// Loop thread, but for the metrics.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "io/loop.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "tenants/policy_set.h"
#include "tenants/rules.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::tenants {

class Policies {
 public:
  // All of it outlives this.
  struct Parts {
    io::Loop& loop;
    kube::Cache& cache;
    Metrics& metrics;
    Log log;
  };
  explicit Policies(Parts parts);
  Policies(const Policies&) = delete;
  Policies& operator=(const Policies&) = delete;
  ~Policies();

  // Whoever asked for rules asks again: those of one namespace may have changed, or, where it is
  // empty, of any. Called when they are settled, too; a listener that comes later is told of later
  // changes. For as long as this lives.
  using Listener = std::function<void(const std::string& namespace_name)>;
  void listen(Listener listener) { listeners_.push_back(std::move(listener)); }

  // Does nothing the second time.
  void start();
  void stop();

  // Not while labels of namespaces are awaited that a new policy looks at.
  [[nodiscard]] bool is_settled() const { return are_known_ && are_namespaces_known_; }
  // For readiness: they were settled once.
  [[nodiscard]] bool has_settled() const { return has_settled_; }
  // Never null.
  [[nodiscard]] std::shared_ptr<const Rules> rules_of(const std::string& namespace_name) const;
  // For namespaces that nothing is known of.
  [[nodiscard]] Rules rules_of_unknown() const { return set_.rules_of(nullptr); }
  // Namespaces that are known, because some policy looks at their labels.
  [[nodiscard]] std::vector<std::string> known_namespaces() const;

 private:
  void on_policy(const kube::Delta& delta);
  void on_failed(const Error& error);
  void follow_namespaces();
  void on_namespaces_failed(const Error& error);
  void changed(const std::string& namespace_name);
  void tell_soon();

  const Parts parts_;
  std::vector<Listener> listeners_;
  PolicySet set_;
  bool are_known_ = false;            // Policies are listed, or cannot be.
  bool are_namespaces_known_ = true;  // The same, of namespaces, where they are needed.
  bool has_settled_ = false;
  bool has_warned_ = false;
  bool has_warned_of_namespaces_ = false;
  int not_found_count_ = 0;
  bool will_tell_ = false;
  mutable std::map<std::string, std::shared_ptr<const Rules>> rules_;
  std::unique_ptr<kube::Cache::Subscription> policies_;
  std::unique_ptr<kube::Cache::Subscription> namespaces_;
  // For the scraping thread.
  std::shared_ptr<std::atomic<std::size_t>> count_;
  std::shared_ptr<std::atomic<bool>> is_readable_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // For what was posted.
};

}  // namespace hangar::tenants
