// Carries out one release: applies its stages to the cluster, and removes resources that are no
// longer wanted.
//
// Every step first reads the cluster's state (a host mostly without a request) and does what is
// missing. It remembers nothing that the next attempt could not find out. A step that has to wait
// returns a Progress that is not done.
#pragma once

#include "airways/instance.h"
#include "airways/lua_rules.h"
#include "airways/ownership.h"
#include "airways/plan.h"
#include "airways/readiness.h"
#include "airways/recording.h"
#include "airways/release_view.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "airways/terms.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

// The reason of an Unavailable error: a kind is not served (yet), such as one whose CRD the release
// has just created.
inline constexpr std::string_view kKindNotServed = "KindNotServed";

// How far a release has come. If it is not done, it waits for a change of one of its resources.
struct Progress {
  bool done = true;
  std::string waiting_for = {};  // For messages: "default/Job.batch:x: Complete is not True".
  std::string failure = {};      // ReleaseReadiness::failure, when it waits for readiness.
};

// The worst readiness of a release's resources.
struct ReleaseReadiness : Readiness {
  // `why` in yoke's words: "failed to get readiness for default/batch/v1/job/x: Complete is not
  // True". Empty when ready.
  std::string failure = {};
};

// Services that releases are carried out with. The references outlive all users.
struct ReleaseParts {
  io::Loop& loop;
  ReleaseView& view;
  const kube::Client& client;  // The host's own, for reading EndpointSlices.
  const CustomReadiness& custom_readiness;
  LuaRules* lua = nullptr;  // Null: there are no rules in Lua.
  // For whom rules run and kinds are looked up.
  budget::Consumer consumer = budget::unnamed_consumer();
  FlightRecording* recording = nullptr;  // Null: requests are not recorded.
};

// How a release is carried out.
struct CarryOptions {
  PruneOptions prune = {};
  Adoption adoption = Adoption::Unowned;
  bool force_conflicts = true;  // Take over fields of other managers.
  Rehearse rehearse = Rehearse::News;
  // Rehearse Flights, too; their reviews run their programs. Off within a review: a program that
  // prints Flights would cause reviews without end.
  bool rehearse_flights = true;
};

// One attempt to carry out a release. Lives within one reconcile; all references outlive it. Loop
// thread only.
class ReleaseWork {
 public:
  // `client`: the identity that carries it out. std::nullopt: only for readiness().
  ReleaseWork(ReleaseParts parts, std::optional<kube::Client> client, const Release& release,
              Instance& memory, CarryOptions options, std::stop_token stop);

  // Sets namespaces, owner marks and owner references on a flight's resources, and watches their
  // kinds. Unavailable when a kind is not served (yet).
  [[nodiscard]] io::Task<Result<>> prepare(Stages& stages);

  // Applies what the cluster does not have, and records the revision before the first write.
  // Without a `source`, the stages are those of a recorded revision, and nothing is recorded. A
  // stage starts when the previous one is ready.
  // Errors: InvalidInput (owned by others, refused by the server), GuestFault (a resource of an
  // earlier stage has failed), and the server's.
  [[nodiscard]] io::Task<Result<Progress>> apply(const Stages& stages,
                                                 const std::optional<Source>& source);

  // Removes resources that are in the history and not in `wanted`.
  [[nodiscard]] io::Task<Result<Progress>> prune(const Stages& wanted);
  // The same for resources of `previous`.
  [[nodiscard]] io::Task<Result<Progress>> prune(const Stages& previous, const Stages& wanted);

  // The number of resources in the stages that have started.
  [[nodiscard]] std::size_t released_count() const { return memory_.released.size(); }

  // The worst readiness of these resources: a failed one counts before one that is not ready.
  [[nodiscard]] io::Task<Result<ReleaseReadiness>> readiness();

 private:
  [[nodiscard]] const kube::Client& client() const;
  // The same for memory_.released from that index on.
  [[nodiscard]] io::Task<Result<ReleaseReadiness>> readiness_from(std::size_t first);
  [[nodiscard]] io::Task<Result<kube::Resource>> find(kube::GroupVersionKind gvk) const;
  [[nodiscard]] io::Task<Result<Progress>> apply_stage(const Stage& stage, const Stages& stages,
                                                       const std::optional<Source>& source);
  [[nodiscard]] io::Task<Result<LiveFact>> look_at(const json::Value* resource);
  [[nodiscard]] io::Task<Result<json::Value>> send(const json::Value* resource, bool dry_run) const;
  [[nodiscard]] io::Task<Result<>> send_all(const Stage& stage, const std::vector<ApplyStep>& steps,
                                            bool dry_run);
  [[nodiscard]] io::Task<Result<Progress>> prune_one(PruneStep step);
  // Sends the request, waits for the answer, and records both.
  [[nodiscard]] io::Task<Result<json::Value>> recorded(FlightRecording::Request request,
                                                       FlightRecording::Send send) const;
  // Its `why` does not name the resource.
  [[nodiscard]] io::Task<Result<Readiness>> readiness_of_one(Instance::Released one);
  // What `script` says of `live`, whose content is `value`.
  [[nodiscard]] io::Task<Result<Readiness>> scripted_readiness(
      std::shared_ptr<const LuaScript> script, ResourceRef ref, kube::ObjectPtr live,
      const json::Value& value);

  const ReleaseParts parts_;
  const std::optional<kube::Client> client_;
  const Release& release_;
  Instance& memory_;
  const CarryOptions options_;
  std::stop_token stop_;
  bool is_recorded_ = false;  // The stages of the present apply() are.
  // Scripts run one at a time, with a bound for all: a release has up to thousands of resources,
  // and a script may be endless.
  io::Semaphore running_script_;
  Duration scripts_time_{};  // Since readiness() began.
};

}  // namespace hangar::airways
