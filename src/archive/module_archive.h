// Keeps copies of the modules to which objects are pinned in the cluster: a host that has never
// seen a module can continue with it, even if its ConfigMap, URL or tag now returns other bytes.
//
// A copy is a ControllerRevision, the kind that Kubernetes has for this: its data is immutable, and
// the usual roles let users read but not write it. Its name contains the module's digest, and bytes
// that are read are checked against the digest. One copy serves all objects in its namespace that
// are pinned to the digest, and stays as long as one of them is. A module that does not fit into
// one object has further objects, its parts. The first object is written last and removed first, so
// that a copy without it counts as absent. Loop thread only.
#pragma once

#include "archive/copy_format.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/client.h"
#include "kube/object.h"
#include "modules/module_store.h"

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::archive {

// Identifies a copy, whether or not it exists.
struct ArchivedModule {
  std::string namespace_;
  std::string sha256;
  auto operator<=>(const ArchivedModule&) const = default;
};

class ModuleArchive {
 public:
  // All of these outlive the archive.
  struct Parts {
    io::Loop& loop;
    io::Workers& workers;
    const kube::Client& client;
    modules::ModuleStore& store;
    CopyFormat format;
  };
  explicit ModuleArchive(Parts parts);
  ModuleArchive(const ModuleArchive&) = delete;
  ModuleArchive& operator=(const ModuleArchive&) = delete;

  // While a Hold lives, remove_unless() leaves the copy alone: for an object whose status does not
  // name the digest yet.
  class [[nodiscard]] Hold {
   public:
    Hold(Hold&& other) noexcept = default;
    Hold& operator=(Hold&& other) noexcept = default;
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() = default;

   private:
    friend class ModuleArchive;
    explicit Hold(std::shared_ptr<const ArchivedModule> held) : held_(std::move(held)) {}
    std::shared_ptr<const ArchivedModule> held_;
  };
  [[nodiscard]] Hold hold(const ArchivedModule& module);

  // Copies the module from the store into the cluster, if there is no copy yet. The outcome is
  // remembered for some minutes, so that calling it for every object costs nothing. Copies of one
  // namespace are written one after the other, and no namespace waits for the copies of another.
  // Errors: NotFound when the store does not have the module, LimitExceeded when it is larger than
  // a copy can be or its namespace has no room for it, Unavailable when too many copies of its
  // namespace wait, Denied, and those of the API server.
  [[nodiscard]] io::Task<Result<>> keep(ArchivedModule module, std::stop_token stop);

  // The bytes of the copy, gzipped and untrusted: anyone with write access to the namespace may
  // have made them. NotFound when there is no copy.
  [[nodiscard]] io::Task<Result<std::string>> read(ArchivedModule module, std::stop_token stop);

  // All copies in a namespace; in the whole cluster if it is empty.
  [[nodiscard]] io::Task<Result<std::vector<ArchivedModule>>> list(std::string namespace_,
                                                                   std::stop_token stop);

  // Deletes the copy unless it is held or `is_needed` returns true; that is called when keep()
  // cannot make the copy meanwhile.
  [[nodiscard]] io::Task<Result<>> remove_unless(ArchivedModule module,
                                                 std::function<bool()> is_needed,
                                                 std::stop_token stop);

 private:
  [[nodiscard]] io::Task<Result<>> create(ArchivedModule module, budget::FairSlots::Slot& slot,
                                          std::stop_token stop);
  // Whether objects of the copy are missing. LimitExceeded when there is no room for them.
  [[nodiscard]] io::Task<Result<bool>> is_wanted(ArchivedModule module, std::size_t parts,
                                                 std::stop_token stop);
  // The objects of all copies in a namespace; in the whole cluster if it is empty.
  [[nodiscard]] io::Task<Result<kube::List>> objects_in(std::string namespace_,
                                                        std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> create_part(kube::ObjectKey key, std::size_t index,
                                               std::string packed, std::size_t count,
                                               std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> remove_parts(ArchivedModule module, std::stop_token stop);
  [[nodiscard]] bool is_held(const ArchivedModule& module) const;
  // The right to write or remove copies of that namespace.
  [[nodiscard]] io::Task<Result<budget::FairSlots::Slot>> take_turn(std::string namespace_,
                                                                    std::stop_token stop);

  // The outcome of keep(), and how long it is reused.
  struct Kept {
    Instant until;
    std::optional<Error> error;
  };

  const Parts parts_;
  budget::FairSlots writing_;
  std::map<ArchivedModule, Kept> kept_;
  std::map<ArchivedModule, std::weak_ptr<const ArchivedModule>> holds_;
};

}  // namespace hangar::archive
