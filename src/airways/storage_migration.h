// Rewrites the instances of a kind after its storage version has changed, until none is stored in
// an earlier version. Then it reports this to the API server, and the template may drop the old
// version.
//
// The API server converts an instance when it stores it: a patch that changes nothing is enough.
// Instances are rewritten one at a time, so that a converter does not get all at once. After a
// restart of the host the migration begins again; an instance that is already rewritten costs a
// request and no write.
// Loop thread only.
#pragma once

#include "base/log.h"
#include "io/loop.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace hangar::airways {

// Whether instances may be stored in another version than the storage version of `crd`.
[[nodiscard]] bool has_other_stored_versions(const json::Value& crd);

class StorageMigration {
 public:
  struct Parts {
    io::Loop& loop;
    const kube::Client& client;  // Outlives stop().
    Log log;
    std::function<void()> changed;  // Called when progress() changes.
  };
  struct Progress {
    std::string version;  // The new storage version.
    std::size_t done = 0;
    std::size_t count = 0;
    std::string error;  // Of the last attempt; it is retried.
  };

  explicit StorageMigration(Parts parts);
  StorageMigration(const StorageMigration&) = delete;
  StorageMigration& operator=(const StorageMigration&) = delete;
  // Call stop() before, unless begin() was never called.
  ~StorageMigration();

  // Runs until the CRD `name` has no other stored version, or until stop(). `instances`: in the
  // storage version. Does nothing while a migration to that version runs.
  [[nodiscard]] io::Task<void> begin(std::string name, kube::Resource instances);
  [[nodiscard]] io::Task<void> stop();
  [[nodiscard]] bool is_under_way() const;
  [[nodiscard]] Progress progress() const;

 private:
  struct State;

  const Parts parts_;
  std::shared_ptr<State> state_;  // Null before the first begin().
};

}  // namespace hangar::airways
