// Copies of the machines that workflows began with, kept in the workflows' namespaces: a host that
// has never seen a module goes on with it although its ConfigMap or tag says something else by now.
//
// A copy is a ControllerRevision, which is what Kubernetes has for this: its data cannot be
// changed, and the usual roles let people see and not write it. It is named by the module's digest,
// and what is read is checked against that. One copy serves all workflows of a namespace; it stays
// for as long as one of them names the digest in its status. Loop thread only.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/client.h"
#include "kube/object.h"
#include "modules/module_store.h"

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::workflows {

// A copy, whether or not it is there.
struct ArchivedModule {
  std::string namespace_;
  std::string sha256;
  auto operator<=>(const ArchivedModule&) const = default;
};

class ModuleArchive {
 public:
  // All of it outlives this.
  struct Parts {
    io::Loop& loop;
    io::Workers& workers;
    const kube::Client& client;
    modules::ModuleStore& store;
  };
  explicit ModuleArchive(Parts parts) : parts_(parts), writing_(parts.loop, 1) {}
  ModuleArchive(const ModuleArchive&) = delete;
  ModuleArchive& operator=(const ModuleArchive&) = delete;

  // While it lives, remove_unless() leaves the copy alone: for a workflow that has not written down
  // yet that it needs it.
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

  // Copies the module out of the store, if there is no copy yet. What came of it is remembered for
  // some minutes, so that it costs nothing to ask for every workflow. Errors: NotFound when the
  // store does not have it, LimitExceeded when it is larger than an object can be, Denied, and
  // those of the API server.
  [[nodiscard]] io::Task<Result<>> keep(ArchivedModule module, std::stop_token stop);

  // The copy, gzipped, which may be anything: whoever may write there may have made it. NotFound
  // when there is none.
  [[nodiscard]] io::Task<Result<std::string>> read(ArchivedModule module, std::stop_token stop);

  // All copies in a namespace; in the cluster, if it is empty.
  [[nodiscard]] io::Task<Result<std::vector<ArchivedModule>>> list(std::string namespace_,
                                                                   std::stop_token stop);

  // Deletes the copy unless it is held or `is_needed` says so; that is asked when nobody can make
  // the copy meanwhile.
  [[nodiscard]] io::Task<Result<>> remove_unless(ArchivedModule module,
                                                 std::function<bool()> is_needed,
                                                 std::stop_token stop);

 private:
  [[nodiscard]] io::Task<Result<>> create(ArchivedModule module, std::stop_token stop);
  [[nodiscard]] bool is_held(const ArchivedModule& module) const;

  // What keep() came to, and until when that is believed.
  struct Kept {
    Instant until;
    std::optional<Error> error;
  };

  const Parts parts_;
  io::Semaphore writing_;
  std::map<ArchivedModule, Kept> kept_;
  std::map<ArchivedModule, std::weak_ptr<const ArchivedModule>> holds_;
};

}  // namespace hangar::workflows
