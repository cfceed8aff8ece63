// One reconcile of one instance: its flight is run and what it printed carried out, or, when only
// its children have changed, its Ready condition follows them.
//
// Expected flow of an evaluation: finalizer and owner reference, run of the flight, plan, record of
// the revision, apply stage by stage, prune, activation of the revision, readiness, status.
//
// Guarantees:
//   - Nothing is applied that the revision history does not name; nothing is deleted that another
//     release owns. Being killed at any point loses nothing: the next reconcile finds what was made
//     through the history.
//   - A reconcile that has to wait for the cluster (a stage's readiness, a deletion) ends; the
//     change that it waits for starts the next one.
// Loop thread only.
#pragma once

#include "airways/acting.h"
#include "airways/binding.h"
#include "airways/identity.h"
#include "airways/instance.h"
#include "airways/output.h"
#include "airways/ownership.h"
#include "airways/platform.h"
#include "airways/recording.h"
#include "airways/release_work.h"
#include "airways/resource_ref.h"
#include "airways/terms.h"
#include "base/result.h"
#include "base/time.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/controller.h"
#include "reconcile/custom_resource.h"

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::airways {

// Lives within one reconcile; everything it is given outlives it.
class InstanceWork {
 public:
  struct Subject {
    const Platform& platform;
    reconcile::CustomResource& shell;  // Of the instances.
    Instance& memory;
    std::shared_ptr<const Binding> binding;  // Null: it can only be taken down.
    PruneOptions prune = {};
    Result<Actor> actor;       // An error: nobody knows as whom.
    std::string said_by = {};  // Before what Events say of failures.
    // What its status says besides.
    std::function<void(json::Value& status)> add_to_status = {};
  };
  // `object`: the newest state of the instance that is known.
  InstanceWork(Subject subject, const kube::Object& object, std::stop_token stop);
  InstanceWork(const InstanceWork&) = delete;
  InstanceWork& operator=(const InstanceWork&) = delete;
  ~InstanceWork();

  // To be called once.
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> run();
  // Instead, if it cannot be worked on: the status says why.
  [[nodiscard]] io::Task<Result<>> report(Verdict verdict);

 private:
  [[nodiscard]] bool is_overtaken() const;
  [[nodiscard]] bool has_news(const ResourceRef& ref) const;

  [[nodiscard]] io::Task<Result<reconcile::Outcome>> carry_out();
  // Whom the flight acts as, and whether the host may act as that.
  [[nodiscard]] io::Task<Result<>> choose_actor();
  [[nodiscard]] Error advise(const Error& error) const;
  [[nodiscard]] io::Task<Result<>> load_history();
  // Says in the status what keeps it from being evaluated at all.
  [[nodiscard]] io::Task<Result<>> prepare();
  [[nodiscard]] ReleaseWork& carrying();
  [[nodiscard]] io::Task<Result<>> claim();
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> evaluate();
  // Another flight or mode than the Airway's, if somebody who may has set one.
  [[nodiscard]] io::Task<Result<>> follow_overrides();
  // Of the approvals that are known, this one is still needed; none, if it is empty.
  [[nodiscard]] io::Task<Result<>> keep_approval(std::string name);
  [[nodiscard]] io::Task<Result<>> release();
  [[nodiscard]] io::Task<Result<Stages>> run_flight();
  void keep_output(std::string_view printed);
  // As whom it is carried out, for people; empty: as the host.
  [[nodiscard]] std::string user() const;
  [[nodiscard]] io::Task<Result<>> settle();
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> tear_down();
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> remove_release();
  // Nobody can act in its namespace any more, and nobody has to.
  [[nodiscard]] io::Task<bool> goes_with_its_namespace();
  // Why it cannot be taken down yet, for people.
  [[nodiscard]] io::Task<void> say_stuck(Error error);
  [[nodiscard]] io::Task<Result<>> write_status(std::optional<Verdict> verdict);
  void announce(const Verdict& verdict);
  void warn_of(std::vector<std::string> sentences);

  const Subject subject_;
  const Platform& platform_;
  Instance& memory_;
  const kube::ObjectKey key_;
  const bool is_being_deleted_;
  const std::stop_token stop_;
  json::Value value_;  // The newest state; replaced by the answer to each of our writes.
  const Release release_;
  std::shared_ptr<const Binding> binding_;  // The subject's, with overrides.
  std::optional<Actor> actor_;              // Nothing: it is not known yet, and nothing is done.
  FlightRecording recording_;
  std::optional<ReleaseWork> carrying_;

  json::Value evaluated_;                // What the flight was given.
  std::optional<json::Value> identity_;  // Itself, if the flight printed that.
  std::optional<Verdict> verdict_;       // What we make of it.
  std::optional<Duration> look_again_after_;
};

// What of an instance is nobody's business but ours is left out: our own status writes would
// evaluate it for ever.
[[nodiscard]] json::Value without_status(json::Value instance);

}  // namespace hangar::airways
