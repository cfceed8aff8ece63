// Rewrites the instances of a kind after its stored version has become another one, until none is
// left in an earlier version; then the API server is told so, which lets the template drop that
// version.
//
// The API server converts an instance when it stores it: a patch that changes nothing is enough.
// One instance at a time, so that a converter is not asked for all at once. After a restart of the
// host it begins anew; what is rewritten already costs a request and no write.
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

// Whether instances may be stored in another version than the one that `crd` stores.
[[nodiscard]] bool has_other_stored_versions(const json::Value& crd);

class StorageMigration {
 public:
  struct Parts {
    io::Loop& loop;
    const kube::Client& client;  // Outlives stop().
    Log log;
    std::function<void()> changed;  // progress() says something else.
  };
  struct Progress {
    std::string version;  // In which they are stored from now on.
    std::size_t done = 0;
    std::size_t count = 0;
    std::string error;  // Of the last attempt; it is tried again.
  };

  explicit StorageMigration(Parts parts);
  StorageMigration(const StorageMigration&) = delete;
  StorageMigration& operator=(const StorageMigration&) = delete;
  // Stop it before, unless it has not begun.
  ~StorageMigration();

  // Goes on until the CRD `name` has no other stored version, or stop(). `instances`: in the
  // version that is stored. Does nothing while it is under way for that version.
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
