// Copies of modules that something in the cluster is pinned to, kept in the cluster: a host that
// has never seen a module goes on with it although its ConfigMap, URL or tag says something else by
// now.
//
// A copy is a ControllerRevision, which is what Kubernetes has for this: its data cannot be
// changed, and the usual roles let people see and not write it. It is named by the module's digest,
// and what is read is checked against that. One copy serves everything in its namespace that is
// pinned to the digest; it stays for as long as something is. A module that does not fit into one
// object has further ones, its parts; the first object is written last and removed first, so that
// a copy without it is not there. Loop thread only.
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

// A copy, whether or not it is there.
struct ArchivedModule {
  std::string namespace_;
  std::string sha256;
  auto operator<=>(const ArchivedModule&) const = default;
};

// What the copies of one feature look like.
struct CopyFormat {
  std::string label;        // On each object; its value says nothing.
  std::string name_prefix;  // Of their names; the digest follows.
  std::string field_manager;
  std::size_t parts_max = 1;  // Objects of one copy, each of limits::kSecretBytesMax.
};

class ModuleArchive {
 public:
  // All of it outlives this.
  struct Parts {
    io::Loop& loop;
    io::Workers& workers;
    const kube::Client& client;
    modules::ModuleStore& store;
    CopyFormat format;
  };
  explicit ModuleArchive(Parts parts) : parts_(std::move(parts)), writing_(parts_.loop, 1) {}
  ModuleArchive(const ModuleArchive&) = delete;
  ModuleArchive& operator=(const ModuleArchive&) = delete;

  // While it lives, remove_unless() leaves the copy alone: for an object whose status does not name
  // the digest yet.
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
  // some minutes, so that it costs nothing to ask for every object. Errors: NotFound when the
  // store does not have it, LimitExceeded when it is larger than a copy can be, Denied, and
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
  [[nodiscard]] io::Task<Result<>> create_part(kube::ObjectKey first, std::size_t index,
                                               std::string packed, std::size_t count,
                                               std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> remove_parts(ArchivedModule module, std::stop_token stop);
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

}  // namespace hangar::archive
