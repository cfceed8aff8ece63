#include "airways/airway_instances.h"

#include "airways/acting.h"
#include "airways/instance.h"
#include "airways/instance_controller.h"
#include "airways/instance_work.h"
#include "airways/platform.h"
#include "airways/terms.h"
#include "base/result.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

constexpr std::string_view kAirwayChanged = "change of its Airway";

}  // namespace

AirwayInstances::AirwayInstances(const Platform& platform, std::string airway_name,
                                 kube::Resource kind)
    : platform_(platform),
      airway_name_(std::move(airway_name)),
      controller_(platform, {.kind = std::move(kind),
                             .name = airway_name_,
                             .concurrency = platform.shared.concurrency,
                             .work = [this](kube::ObjectPtr instance, Instance& memory,
                                            std::stop_token stop) {
                               return work_on(std::move(instance), memory, std::move(stop));
                             }}) {}

AirwayInstances::~AirwayInstances() = default;

void AirwayInstances::bind(std::shared_ptr<const Binding> binding) {
  binding_ = std::move(binding);
  controller_.evaluate_all(kAirwayChanged);
}

void AirwayInstances::act_as(const Result<Acting>& acting) {
  if (acting_ && (!acting || (*acting_ && **acting_ == *acting))) return;
  const bool is_first = !acting_;
  acting_ = acting;
  if (!is_first) controller_.evaluate_all(kAirwayChanged);
}

Result<Actor> AirwayInstances::actor_of(const kube::ObjectKey& instance) const {
  if (!acting_) return fail(ErrorKind::Unavailable, "the Airway has not been reconciled yet");
  const Acting acting = HANGAR_TRY(*acting_);
  return actor_for(acting, instance.namespace_);
}

InstanceController::OutcomeTask AirwayInstances::work_on(kube::ObjectPtr instance, Instance& memory,
                                                         std::stop_token stop) {
  InstanceWork work({.platform = platform_,
                     .shell = controller_.shell(),
                     .memory = memory,
                     .binding = binding_,
                     .prune = prune_,
                     .actor = actor_of(instance->key()),
                     .said_by = fmt::format("airway {}: ", airway_name_)},
                    *instance, std::move(stop));
  co_return co_await work.run();
}

}  // namespace hangar::airways
