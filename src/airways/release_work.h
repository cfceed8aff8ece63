// Carries one release out: stage by stage into the cluster, and what is no longer wanted out of it.
//
// Every step looks at the cluster first (a host without a request, mostly) and does what is
// missing; nothing is remembered that the next attempt could not find out. A step that has to wait
// returns Waiting at once.
#pragma once

#include "airways/instance.h"
#include "airways/ownership.h"
#include "airways/plan.h"
#include "airways/readiness.h"
#include "airways/recording.h"
#include "airways/release_view.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "airways/terms.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

// The reason of an Unavailable error: a kind is not served (yet), as for a moment one whose CRD the
// release has just made.
inline constexpr std::string_view kKindNotServed = "KindNotServed";

// How far a release came. When it waits, a change of one of its resources is what it waits for.
struct Progress {
  bool done = true;
  std::string waiting_for = {};  // "Job batch \"x\": not complete": for people.
};

// What releases are carried out with. Every reference outlives whoever is given this.
struct ReleaseParts {
  io::Loop& loop;
  ReleaseView& view;
  const kube::Client& client;  // For what is not done as somebody: looking at EndpointSlices.
  const CustomReadiness& custom_readiness;
  FlightRecording* recording = nullptr;  // Null: nobody is told of what is asked for.
};

// How one is carried out.
struct CarryOptions {
  PruneOptions prune = {};
  Adoption adoption = Adoption::Unowned;
  bool force_conflicts = true;  // Fields that somebody else manages become ours.
  bool rehearse = true;         // What is new in a stage is sent as a dry run first.
  // A rehearsal sends Flights, too, whose reviews run their programs. Off within a review: programs
  // that print Flights would make reviews without end.
  bool rehearse_flights = true;
};

// One attempt. Lives within one reconcile; everything it is given outlives it. Loop thread only.
class ReleaseWork {
 public:
  // `client`: who it is carried out as. Nothing: it is only looked at, by readiness().
  ReleaseWork(ReleaseParts parts, std::optional<kube::Client> client, const Release& release,
              Instance& memory, CarryOptions options, std::stop_token stop);

  // Namespaces, owner marks and owner references for a flight's resources, and watches for their
  // kinds. Unavailable when a kind is not served (yet).
  [[nodiscard]] io::Task<Result<>> prepare(Stages& stages);

  // Applies what the cluster does not have, the revision recorded before the first write; without a
  // `source` none is, because these are the stages of one. A stage begins when the one before is
  // ready. Errors: InvalidInput (owned by others, refused by the
  // server), GuestFault (a resource of an earlier stage has failed), and the server's.
  [[nodiscard]] io::Task<Result<Progress>> apply(const Stages& stages,
                                                 const std::optional<Source>& source);

  // Removes what the history has and `wanted` has not.
  [[nodiscard]] io::Task<Result<Progress>> prune(const Stages& wanted);
  // The same of what `previous` has.
  [[nodiscard]] io::Task<Result<Progress>> prune(const Stages& previous, const Stages& wanted);

  // How many resources the stages have that were begun.
  [[nodiscard]] std::size_t released_count() const { return memory_.released.size(); }

  // Of everything in `stages`. Failed resources come first, then those that are not ready.
  [[nodiscard]] io::Task<Result<Readiness>> readiness();

 private:
  [[nodiscard]] const kube::Client& client() const;
  [[nodiscard]] io::Task<Result<kube::Resource>> find(kube::GroupVersionKind gvk) const;
  [[nodiscard]] io::Task<Result<Progress>> apply_stage(const Stage& stage, const Stages& stages,
                                                       const std::optional<Source>& source);
  [[nodiscard]] io::Task<Result<LiveFact>> look_at(const json::Value* resource);
  [[nodiscard]] io::Task<Result<json::Value>> send(const json::Value* resource, bool dry_run) const;
  [[nodiscard]] io::Task<Result<>> send_all(const Stage& stage, const std::vector<ApplyStep>& steps,
                                            bool dry_run);
  [[nodiscard]] io::Task<Result<Progress>> prune_one(PruneStep step);
  // Waits for the answer, and has both recorded.
  [[nodiscard]] io::Task<Result<json::Value>> recorded(FlightRecording::Request request,
                                                       kube::Client::ValueTask task) const;
  [[nodiscard]] io::Task<Result<Readiness>> readiness_of_one(Instance::Released one);

  const ReleaseParts parts_;
  const std::optional<kube::Client> client_;
  const Release& release_;
  Instance& memory_;
  const CarryOptions options_;
  std::stop_token stop_;
};

}  // namespace hangar::airways
