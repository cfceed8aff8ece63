// The objects for which their namespaces have no room in the host's memory (kube/cache/ration.h),
// and which of them to look at when some is freed.
//
// A namespace decides how many of its objects wait, and how often it frees memory. So freed memory
// has a few looked at, in turn, and not all: the others are looked at from time to time anyway.
// A machine without I/O. Loop thread only.
#pragma once

#include "kube/object.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hangar::reconcile {

class MemoryWaits {
 public:
  // How many objects freed memory has looked at.
  static constexpr std::size_t kLooksMax = 64;

  struct Waiting {
    std::string resource_version = {};
    // That it needs: for itself, if the cache has it bare, and for the documents made of it.
    std::uint64_t bytes = 0;
    bool is_bare = false;  // The cache has it so.
  };
  // kube::Ration::has_room(), or its replacement in a test.
  using HasRoom = std::function<bool(const std::string& namespace_name, std::uint64_t bytes)>;

  void put(const kube::ObjectKey& key, Waiting waiting) { waiting_[key] = std::move(waiting); }
  void erase(const kube::ObjectKey& key) { waiting_.erase(key); }
  // Null: it does not wait. Valid until the next change.
  [[nodiscard]] Waiting* find(const kube::ObjectKey& key);
  [[nodiscard]] bool has_any(const std::string& namespace_name) const;

  // Those of the namespace that have room, all together. Looks at kLooksMax of them, and goes on
  // behind these the next time.
  [[nodiscard]] std::vector<kube::ObjectKey> with_room(const std::string& namespace_name,
                                                       const HasRoom& has_room);

 private:
  std::map<kube::ObjectKey, Waiting> waiting_;
  kube::ObjectKey last_;  // Looked at.
};

}  // namespace hangar::reconcile
