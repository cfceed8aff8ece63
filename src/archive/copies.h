// The copies of one feature: an archive, and the removal of copies that no object needs.
//
// Guarantees: a copy stays while an object needs it. An unneeded copy is removed when the feature
// calls look_at(), when this host starts to lead (look_at_all()), and once an hour. Where the host
// may not list copies in the whole cluster, it looks for them in the namespaces that have objects
// of the feature. Loop thread only.
#pragma once

#include "archive/copy_format.h"
#include "archive/module_archive.h"
#include "base/log.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/object.h"
#include "modules/module_store.h"
#include "reconcile/controller.h"
#include "reconcile/platform.h"

#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::archive {

// The namespace whose copies a requester may use; std::nullopt: none of these. A tenant may use
// copies in its own namespace, a cluster-scoped requester those in the host's. `kept_in`: the
// namespace of all these copies; empty: each namespace has its own. `tenant`: the requester's
// namespace; empty: it is cluster-scoped.
[[nodiscard]] std::optional<std::string> namespace_for(const std::string& kept_in,
                                                       const std::string& tenant);

class Copies {
 public:
  // All parts outlive this object.
  struct Parts {
    const reconcile::Platform& platform;
    modules::ModuleStore& store;
    CopyFormat format;
    Log log = {};
    std::string name;  // Name of the controller that removes copies, in logs and metrics.
    // The namespace of all copies; empty: each copy is in the namespace of its objects.
    std::string kept_in = {};
    // Whether all objects of the feature are known.
    std::function<bool()> is_synced;
    // Whether any object needs the copy. Only called once they are known.
    std::function<bool(const ArchivedModule& copy)> is_needed;
    // The namespaces that have objects. Not called if all copies are in one namespace.
    std::function<std::vector<std::string>()> namespaces = {};
  };
  explicit Copies(Parts parts);
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  ~Copies();  // Call stop() before.

  void start();
  [[nodiscard]] io::Task<void> stop();

  [[nodiscard]] ModuleArchive& archive() { return archive_; }
  // The copy that an object of that namespace needs.
  [[nodiscard]] ArchivedModule of(std::string namespace_, std::string sha256) const;

  // Removes all unneeded copies: call it once all objects are known.
  void look_at_all();
  // An object that needed this copy may need it no longer.
  void look_at(ArchivedModule copy);
  // This namespace has an object.
  void look_in(const std::string& namespace_);

 private:
  using Outcome = reconcile::Outcome;

  // A key with a name is a copy, one without a name is a namespace, and one without either is all.
  [[nodiscard]] io::Task<Result<Outcome>> tidy(kube::ObjectKey key, std::stop_token stop);
  [[nodiscard]] io::Task<Result<Outcome>> remove(ArchivedModule copy, std::stop_token stop);

  const Parts parts_;
  ModuleArchive archive_;
  // The namespaces that were searched since the last look at all; unset: one list covers the
  // whole cluster.
  std::optional<std::set<std::string>> looked_in_;
  reconcile::Controller tidier_;
};

}  // namespace hangar::archive
