// Objects of the cluster that this host keeps in their desired state: webhook configurations,
// policies and their bindings. It reverts edits and deletions by others, and deletes objects of an
// earlier host that are no longer wanted.
//
// A label whose value is the host's namespace marks them, so that two installations do not delete
// each other's objects.
// Loop thread only.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/object.h"
#include "reconcile/controller.h"

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::admission {

inline constexpr std::string_view kKeptByLabel = "hangar.dev/kept-by";
inline constexpr std::string_view kKeptFieldManager = "hangar-admission";

class KeptObjects {
 public:
  struct Parts {
    io::Loop& loop;
    const kube::Client& client;  // Writes only while this host leads.
    kube::Cache& cache;
    Metrics& metrics;
    Log log;
  };
  // `keeper`: the label's value. `namespace_`: the namespace of all objects; empty for a
  // cluster-scoped kind.
  KeptObjects(Parts parts, kube::Resource kind, std::string keeper, std::string namespace_ = {});
  KeptObjects(const KeptObjects&) = delete;
  KeptObjects& operator=(const KeptObjects&) = delete;
  // Call stop() before.
  ~KeptObjects();

  // `object` has a name; its kind, version and label are set here. Nothing is sent before start().
  void want(json::Value object);
  void drop(const std::string& name);
  // From now on, objects with the label that are not wanted are deleted.
  void keep_no_others();

  // The error that keeps the object from its desired state; Unavailable while its state is unknown.
  [[nodiscard]] Result<> check(const std::string& name) const;

  void start();
  // Waits until every wanted object has been applied, but no longer than `most`.
  [[nodiscard]] io::Task<void> settle(Duration most);
  [[nodiscard]] io::Task<void> stop();

 private:
  struct Wanted {
    json::Value object;
    std::string applied_version;   // resourceVersion after our last apply; empty: none.
    std::optional<Error> problem;  // Error of the last attempt.
  };

  [[nodiscard]] kube::ObjectKey key_of(std::string name) const {
    return {.namespace_ = namespace_, .name = std::move(name)};
  }
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> reconcile(kube::ObjectKey key,
                                                               std::stop_token stop);
  void look_at_all();

  const Parts parts_;
  const kube::Resource kind_;
  const std::string keeper_;
  const std::string namespace_;
  std::map<std::string, Wanted> wanted_;
  io::Event applied_;
  bool is_complete_ = false;  // keep_no_others() was called.
  reconcile::Controller controller_;
  std::unique_ptr<kube::Cache::Subscription> present_;
};

}  // namespace hangar::admission
