#include "kube/cache/ration.h"

#include "base/result.h"
#include "kube/cache/cache.h"
#include "kube/object.h"

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace hangar::kube {

struct Ration::State {
  explicit State(AllowanceOf allowance_of_in) : allowance_of(std::move(allowance_of_in)) {}

  const AllowanceOf allowance_of;
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Share>> shares;
};

// What one namespace has. It exists while an object of the namespace is counted.
class Ration::Share {
 public:
  Share(std::shared_ptr<State> state, std::string namespace_name)
      : state_(std::move(state)),
        namespace_(std::move(namespace_name)),
        allowance_(state_->allowance_of(namespace_)) {}
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  ~Share() {
    const std::scoped_lock lock(state_->mutex);
    const auto found = state_->shares.find(namespace_);
    // Another thread may have begun a new share meanwhile.
    if (found != state_->shares.end() && found->second.expired()) state_->shares.erase(found);
  }

  [[nodiscard]] static std::shared_ptr<Share> of(const std::shared_ptr<State>& state,
                                                 const std::string& namespace_name) {
    const std::scoped_lock lock(state->mutex);
    std::weak_ptr<Share>& known = state->shares[namespace_name];
    std::shared_ptr<Share> share = known.lock();
    if (!share) {
      share = std::make_shared<Share>(state, namespace_name);
      known = share;
    }
    return share;
  }

  [[nodiscard]] Result<> add(std::uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    HANGAR_TRY(allowance_->resize(bytes_ + bytes));
    bytes_ += bytes;
    return {};
  }
  // Whether there is room or not: nothing else of the namespace gets any until these have theirs.
  void add_anyway(std::uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    bytes_ += bytes;
    (void)allowance_->resize(bytes_);
  }
  void subtract(std::uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    bytes_ -= bytes;
    (void)allowance_->resize(bytes_);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::string namespace_;
  std::mutex mutex_;
  const std::unique_ptr<Allowance> allowance_;
  std::uint64_t bytes_ = 0;  // The allowance may have less, after add_anyway().
};

// The deleter of a counted object, by which it is recognised.
struct Ration::Counted {
  ObjectPtr object;
  std::shared_ptr<Share> share;
  std::uint64_t bytes = 0;

  static ObjectPtr pointer_to(ObjectPtr object, std::shared_ptr<Share> share, std::uint64_t bytes) {
    const Object* const counted = object.get();
    return ObjectPtr(counted, Counted{std::move(object), std::move(share), bytes});
  }

  void operator()(const Object* /*object*/) {
    object.reset();
    share->subtract(bytes);
    share.reset();
  }
};

Ration::Ration(AllowanceOf allowance_of)
    : state_(std::make_shared<State>(std::move(allowance_of))) {}

Result<ObjectPtr> Ration::hold(ObjectPtr object) const {
  if (object->key().namespace_.empty() || object->is_bare() ||
      std::get_deleter<Counted>(object) != nullptr) {
    return object;
  }
  std::shared_ptr<Share> share = Share::of(state_, object->key().namespace_);
  // Of a packed object, too, the bytes before packing: what it is packed to depends on others.
  const std::uint64_t bytes = object->size_bytes();
  HANGAR_TRY(share->add(bytes));
  return Counted::pointer_to(std::move(object), std::move(share), bytes);
}

ObjectPtr Ration::hold_or_bare(ObjectPtr object) const {
  Result<ObjectPtr> held = hold(object);
  if (held) return *std::move(held);
  ObjectPtr bare = bare_of(*object);
  std::shared_ptr<Share> share = Share::of(state_, bare->key().namespace_);
  const std::uint64_t bytes = bare->size_bytes();
  share->add_anyway(bytes);
  return Counted::pointer_to(std::move(bare), std::move(share), bytes);
}

Result<std::shared_ptr<const void>> Ration::hold_bytes(const std::string& namespace_name,
                                                       std::uint64_t bytes) const {
  if (namespace_name.empty() || bytes == 0) return std::shared_ptr<const void>();
  std::shared_ptr<Share> share = Share::of(state_, namespace_name);
  HANGAR_TRY(share->add(bytes));
  Share* const counted = share.get();
  return std::shared_ptr<const void>(
      counted, [share = std::move(share), bytes](const void* /*counted*/) mutable {
        share->subtract(bytes);
        share.reset();
      });
}

bool Ration::has_room(const std::string& namespace_name, std::uint64_t bytes) const {
  if (namespace_name.empty()) return true;
  const std::shared_ptr<Share> share = Share::of(state_, namespace_name);
  if (!share->add(bytes)) return false;
  share->subtract(bytes);
  return true;
}

}  // namespace hangar::kube
