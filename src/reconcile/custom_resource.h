// The shell of a feature around its custom resource: everything that a feature needs besides its
// own decisions.
//
// It owns the subscription, the queue, the newest known state, the finalizer, the single guard of
// status writes, Events when something changes, and whether the feature is ready. A feature gives
// its kind and a function that reconciles one object:
//
//   CustomResource things(platform, {.kind = thing_resource(), .name = "thing",
//                                    .field_manager = "hangar-things",
//                                    .reconcile = [](kube::ObjectPtr thing, std::stop_token) {...},
//                                    .forget = [](kube::ObjectKey) {...}});
//
// Guarantees:
//   - reconcile() receives the newest known state of an object that exists: never an older one than
//     the answer to any write through this shell.
//   - An echo of our own write starts no run.
//   - reconcile() receives whole objects. Where the namespace of an object has no room in the
//     host's memory (kube/cache/ration.h) for the object, or for the documents that a run makes of
//     a dense one, the object waits, and its conditions say so. A deletion does not wait.
//   - A status is written only over the object that it was computed for. Only this shell decides
//     whether another writer was first: then the answer is Conflict, and the object's key is
//     queued again.
// Loop thread only.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "reconcile/controller.h"
#include "reconcile/event_recorder.h"
#include "reconcile/memory_waits.h"
#include "reconcile/newest.h"
#include "reconcile/platform.h"
#include "reconcile/predicates.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::reconcile {

// The origin of a status, and therefore what it may be written over.
enum class StatusOf : std::uint8_t {
  Spec,     // That generation, whatever happened to labels or the status meanwhile.
  Version,  // Exactly that state, because the next decision builds on it.
};

// Which side puts the finalizer on an object.
enum class FinalizerBy : std::uint8_t { Shell, Feature };

class CustomResource {
 public:
  using OutcomeTask = io::Task<Result<Outcome>>;
  struct Options {
    kube::Resource kind;
    std::string name;  // Of the controller, in logs and metrics.
    std::string field_manager;
    Log log = {};
    std::size_t concurrency = 1;
    // How many documents (json::Value) of its object a run of reconcile() holds at once. Those of a
    // dense object are counted for its namespace until the run ends (document_memory_of()). Zero:
    // none are.
    std::uint64_t documents = 0;
    // Its status has a condition Stalled besides Ready.
    bool has_stalled = false;
    // Kept on each object while it lives, so that finalize() runs before it is deleted.
    // Empty: none.
    std::string finalizer = {};
    // Feature: reconcile() adds it, together with what else it writes before it creates anything.
    FinalizerBy finalizer_by = FinalizerBy::Shell;

    // One run for an object that exists. Errors as Controller has them.
    std::function<OutcomeTask(kube::ObjectPtr newest, std::stop_token stop)> reconcile;
    // The object is being deleted: undo what was made for it. Once an outcome requests no further
    // run, the shell removes the finalizer. Called only if the object has the finalizer.
    std::function<OutcomeTask(kube::ObjectPtr newest, std::stop_token stop)> finalize = {};
    // The object is gone, or is being deleted without our finalizer: drop what the host remembers
    // of it. Called again for every key without an object, so also for an unknown one.
    std::function<io::Task<void>(kube::ObjectKey key)> forget;

    // Decides which changes by others need a run. An object that appears or disappears always needs
    // one.
    std::function<bool(const kube::Delta& delta)> predicate = generation_changed;
    // Called for each change by others that needs a run, before its key is queued.
    std::function<void(const kube::Delta& delta)> on_change = {};
    // Called when the first list has arrived.
    std::function<void()> on_synced = {};
  };

  CustomResource(const Platform& platform, Options options);
  CustomResource(const CustomResource&) = delete;
  CustomResource& operator=(const CustomResource&) = delete;
  // Call stop() first.
  ~CustomResource();

  void start();
  // Unsubscribes from changes, and waits for the running reconciles.
  [[nodiscard]] io::Task<void> stop();
  // The first list has arrived, so the objects are known and the feature is ready.
  [[nodiscard]] bool is_synced() const { return subscription_ && subscription_->is_synced(); }

  void enqueue(kube::ObjectKey key) { controller_.enqueue(std::move(key)); }
  void enqueue_after(kube::ObjectKey key, Duration delay) {
    controller_.enqueue_after(std::move(key), delay);
  }

  // As Controller::queued_at.
  [[nodiscard]] std::optional<Instant> queued_at(const kube::ObjectKey& key) const {
    return controller_.queued_at(key);
  }

  [[nodiscard]] const kube::Resource& kind() const { return options_.kind; }
  // Null when there is none. May be bare (kube::Object::is_bare), and so may those of list().
  [[nodiscard]] kube::ObjectPtr newest(const kube::ObjectKey& key) const;
  // The newest of all objects, or of one namespace, by key.
  [[nodiscard]] std::vector<kube::ObjectPtr> list(std::string_view namespace_ = {}) const;
  // The namespaces that have at least one object.
  [[nodiscard]] std::vector<std::string> namespaces() const;

  // Replaces the status of `object`. Returns the object as it is now, which is what newest()
  // returns from here on. Conflict: another writer was first, and the next run sees its state.
  // Cancelled: the object is gone. `observer` learns each request that writes.
  [[nodiscard]] io::Task<Result<json::Value>> write_status(
      json::Value object, json::Value status, StatusOf of, std::stop_token stop,
      kube::RequestObserver* observer = nullptr);
  // A dry run: returns what the API server would answer to a write.
  [[nodiscard]] io::Task<Result<json::Value>> try_status(json::Value object, json::Value status,
                                                         std::stop_token stop,
                                                         kube::RequestObserver* observer = nullptr);
  // Changes the object for the feature, outside of its status. The run continues with the answer: a
  // change that is part of the answer starts no other run, even if the watch delivers it first. One
  // call at a time for each object.
  [[nodiscard]] io::Task<Result<json::Value>> patch(kube::ObjectKey key, kube::PatchType type,
                                                    json::Value patch, std::stop_token stop,
                                                    kube::RequestObserver* observer = nullptr);

  // For work that is useless once the object is being deleted or is gone, such as waiting for its
  // guest. The token is then stopped, so that the deletion does not have to wait. Within one run.
  class WhileItLives {
   public:
    // `stop`: the run's.
    WhileItLives(CustomResource& shell, kube::ObjectKey key, const std::stop_token& stop);
    WhileItLives(const WhileItLives&) = delete;
    WhileItLives& operator=(const WhileItLives&) = delete;
    ~WhileItLives();

    [[nodiscard]] std::stop_token token() const { return end_.get_token(); }

   private:
    friend class CustomResource;
    CustomResource& shell_;
    const kube::ObjectKey key_;
    std::stop_source end_;
    const std::stop_callback<std::function<void()>> on_stop_;
  };

  // Announces that the object's state is `state` now: `text` becomes an Event if the state differs
  // from the last one, or has another message. An empty state means that nothing is wrong, and has
  // no text.
  void announce(const json::Value& object, std::string state, std::optional<EventText> text);
  // The state that was announced last; empty when there is none.
  [[nodiscard]] std::string_view announced(const kube::ObjectKey& key) const;
  // Writes an Event about an object, unless the object is gone.
  void record(const kube::ObjectKey& key, EventText text);

 private:
  [[nodiscard]] OutcomeTask run(kube::ObjectKey key, std::stop_token stop);
  [[nodiscard]] OutcomeTask run_finalize(kube::ObjectPtr object, std::stop_token stop);
  [[nodiscard]] OutcomeTask try_finalize(kube::ObjectPtr object, std::stop_token stop);
  // The memory for the documents that a run makes of its object.
  class Documents {
   public:
    explicit Documents(CustomResource& shell) : shell_(shell), shell_lives_(shell.alive_) {}
    Documents(const Documents&) = delete;
    Documents& operator=(const Documents&) = delete;
    // Others of the namespace may wait for it.
    ~Documents();

    void hold(std::shared_ptr<const void> bytes, std::string namespace_name);

   private:
    CustomResource& shell_;
    const std::weak_ptr<bool> shell_lives_;  // A run that does not end in time may outlive it.
    std::shared_ptr<const void> bytes_;
    std::string namespace_;
  };
  // The whole object, with the memory for its documents. Null: the run ends with `waits`, because
  // the object is gone or its namespace has no room for it.
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> with_room(kube::ObjectPtr object,
                                                            Documents& documents, Outcome& waits,
                                                            std::stop_token stop);
  // Whether it waits for memory, in this state, and there still is none.
  [[nodiscard]] bool waits_still(const kube::Object& object);
  // The status tells why the object has to wait. Parses no more of the object than its status.
  [[nodiscard]] io::Task<Result<>> report_wait(kube::ObjectPtr object, Error error,
                                               std::stop_token stop);
  // Soon looks again at some of those that wait for memory.
  void on_memory_freed(const std::string& namespace_name);
  void on_delta(const kube::Delta& delta);
  void remember(const json::Value& answer);
  void remember(kube::ObjectPtr object, Newest::Origin origin);
  // Null when there is none.
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> read(kube::ObjectKey key,
                                                       std::stop_token stop) const;
  // Of `object`, only what identity_of() has is read. `detail` of the answer: with the metadata
  // only, it is not remembered as the newest state.
  [[nodiscard]] io::Task<Result<json::Value>> put_status(json::Value object, json::Value status,
                                                         StatusOf of, kube::Detail detail,
                                                         std::stop_token stop,
                                                         kube::RequestObserver* observer);
  [[nodiscard]] io::Task<Result<json::Value>> patch_status(const json::Value& object,
                                                           json::Value status,
                                                           kube::WriteOptions options,
                                                           std::stop_token stop,
                                                           kube::RequestObserver* observer) const;

  const Platform& platform_;
  const Options options_;
  Newest newest_;
  bool has_listed_ = false;  // The cache has told the first list to its end.
  struct Announced {
    std::string state;
    std::string message;  // Of its Event.
  };
  std::map<kube::ObjectKey, Announced> announced_;
  std::map<kube::ObjectKey, std::vector<WhileItLives*>> living_;
  // Objects for which their namespaces have had no room.
  MemoryWaits waiting_;
  std::set<std::string> freed_;  // Namespaces of which objects that wait will be looked at.
  // For objects that patch() is changing: deltas held back until it is known which one is the echo.
  std::map<kube::ObjectKey, std::vector<kube::Delta>> held_;
  Controller controller_;
  std::unique_ptr<kube::Cache::Subscription> subscription_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // Expired: the shell is gone.
};

// The JSON patch that replaces the status of exactly this state of the object: the API server
// answers Conflict when it has another state.
[[nodiscard]] json::Value status_replacement(const json::Value& object, json::Value status);

// Whether a status that was computed for one state may be written over the other.
[[nodiscard]] bool is_same_spec(const json::Value& left, const json::Value& right);

// The memory that so many documents of the object need; zero if that is not counted, because they
// are no larger than those of usual objects (limits::kDocumentFreeBytesMax).
[[nodiscard]] std::uint64_t document_memory_of(const kube::Object& object, std::uint64_t documents);

// What identifies the object and its state, as a document without the rest: apiVersion, kind, and
// of the metadata namespace, name, uid, resourceVersion and generation.
[[nodiscard]] json::Value identity_of(const kube::Object& object, const kube::Resource& kind);

// The object's status, without parsing the rest; an empty one when there is none. std::nullopt: it
// needs more memory than limits::kWaitStatusBytesMax, or is nested too deep.
[[nodiscard]] std::optional<json::Value> small_status_of(const kube::Object& object);

// A copy of the object's status, to be changed; an empty one when there is none.
[[nodiscard]] json::Value status_of(const json::Value& object);

}  // namespace hangar::reconcile
