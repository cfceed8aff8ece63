// One reconcile of one instance. Runs its flight and carries out what the flight printed; if only
// children have changed, updates the Ready condition.
//
// Expected flow of an evaluation: finalizer and owner reference, run of the flight, plan, record of
// the revision, apply stage by stage, prune, activation of the revision, readiness, status.
//
// Guarantees:
//   - Only resources that the revision history names are applied, and no resource of another
//     release is deleted. A crash at any point loses nothing: from the history, the next reconcile
//     knows the resources that may exist.
//   - A reconcile that has to wait for the cluster (a stage's readiness, a deletion) returns; the
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
#include "airways/reasons.h"
#include "airways/recording.h"
#include "airways/release_work.h"
#include "airways/resource_ref.h"
#include "airways/terms.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/controller.h"
#include "reconcile/custom_resource.h"
#include "reconcile/guest_waits.h"

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::airways {

// Lives within one reconcile; all its arguments outlive it.
class InstanceWork {
 public:
  struct Subject {
    const Platform& platform;
    reconcile::CustomResource& shell;  // Of the instance's kind.
    Instance& memory;
    std::shared_ptr<const Binding> binding;  // Null: only its release can be removed.
    PruneOptions prune = {};
    Result<Actor> actor;       // An error: why the actor is not known.
    std::string said_by = {};  // Prefix of Events about failures.
    // Adds members to the status.
    std::function<void(json::Value& status)> add_to_status = {};
  };
  // `object`: the newest known state of the instance.
  InstanceWork(Subject subject, const kube::Object& object, std::stop_token stop);
  InstanceWork(const InstanceWork&) = delete;
  InstanceWork& operator=(const InstanceWork&) = delete;
  ~InstanceWork();

  // Call either run() or report(), once.
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> run();
  // Reports in the status why the instance cannot be worked on.
  [[nodiscard]] io::Task<Result<>> report(Verdict verdict);

 private:
  [[nodiscard]] bool is_overtaken() const;
  [[nodiscard]] bool has_news(const ResourceRef& ref) const;

  [[nodiscard]] io::Task<Result<reconcile::Outcome>> carry_out();
  // Sets actor_, and checks that the host may act as it.
  [[nodiscard]] io::Task<Result<>> choose_actor();
  [[nodiscard]] Error advise(const Error& error) const;
  [[nodiscard]] io::Task<Result<>> load_history();
  // Chooses the actor and loads the history. If only a user can repair a failure, the status says
  // why.
  [[nodiscard]] io::Task<Result<>> prepare();
  [[nodiscard]] ReleaseWork& carrying();
  [[nodiscard]] io::Task<Result<>> claim();
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> evaluate();
  // Uses another flight or mode than the Airway's, if a user with the right to do so has set one.
  [[nodiscard]] io::Task<Result<>> follow_overrides();
  [[nodiscard]] std::function<void()> when_it_is_another();
  // Remembers this approval (empty: none) and removes the previous one if it is another.
  [[nodiscard]] io::Task<Result<>> keep_approval(std::string name);
  [[nodiscard]] io::Task<Result<>> release();
  [[nodiscard]] io::Task<Result<Stages>> run_flight();
  // What the flight runs for, now.
  [[nodiscard]] Reasons take_reasons();
  void keep_output(std::string_view printed);
  // The user name of the actor; empty: the host.
  [[nodiscard]] std::string user() const;
  [[nodiscard]] budget::Consumer consumer() const;
  [[nodiscard]] io::Task<Result<>> settle();
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> tear_down();
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> remove_release();
  // Whether its namespace is being deleted: then nobody can act there, and nobody needs to.
  [[nodiscard]] io::Task<bool> goes_with_its_namespace();
  // Reports in an Event and in the status why the release cannot be removed yet.
  [[nodiscard]] io::Task<void> say_stuck(Error error);
  [[nodiscard]] io::Task<Result<>> write_status(std::optional<Verdict> verdict);
  // The answer to a write of the status is the newest state of the instance.
  void take_answer(json::Value answer);
  // Reports in the status what the flight waits for, or that it no longer waits.
  [[nodiscard]] io::Task<void> tell_wait(reconcile::GuestWait wait);
  void announce(const Verdict& verdict);
  void warn_of(std::vector<std::string> sentences);

  const Subject subject_;
  const Platform& platform_;
  Instance& memory_;
  const kube::ObjectKey key_;
  const bool is_being_deleted_;
  const std::stop_token stop_;
  json::Value value_;  // The newest state; each of our writes replaces it with the answer.
  Release release_;
  std::shared_ptr<const Binding> binding_;  // The subject's, with overrides.
  std::optional<Actor> actor_;              // std::nullopt: not chosen yet.
  FlightRecording recording_;
  std::optional<ReleaseWork> carrying_;

  json::Value evaluated_;                // The instance as the flight got it.
  std::optional<json::Value> identity_;  // The instance as the flight printed it, if it did.
  std::optional<budget::Reservation> output_memory_;  // For the stages that release() carries out.
  std::optional<Verdict> verdict_;                    // For the Ready condition.
  bool is_refused_ = false;  // An error comes from the cluster, not the flight.
  std::optional<Duration> look_again_after_;
};

}  // namespace hangar::airways
