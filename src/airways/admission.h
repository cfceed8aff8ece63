// Answers the API server's requests about Airways and their instances: whether to accept an object,
// and how it looks in another version of its kind. Flights: flight_admission.h.
//
// Guarantees:
//   - A review of an instance evaluates its flight on the proposed object (proposed.h).
//   - No module is fetched that an unauthenticated sender names, in an Airway or in an override; a
//     warning says so.
//   - Objects that are being deleted, and updates that change only finalizers and owners, pass
//     without a module.
//   - The converter that the Airway is pinned to converts its instances.
//   - Webhooks are registered for Airways, for the kind of each Airway and for Flights, and for
//     nothing else.
// Every replica answers, whether or not it leads. Loop thread only.
#pragma once

#include "abi/flight/evaluation.h"
#include "admission/conversion_review.h"
#include "admission/review.h"
#include "admission/webhooks.h"
#include "airways/acting.h"
#include "airways/airway.h"
#include "airways/conversion_recording.h"
#include "airways/flight.h"
#include "airways/flight_admission.h"
#include "airways/flight_modules.h"
#include "airways/flight_status.h"
#include "airways/overrides.h"
#include "airways/platform.h"
#include "airways/review_modules.h"
#include "airways/review_slots.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/token_bucket.h"
#include "gateway/authorizer.h"
#include "io/event.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "modules/supply.h"
#include "reconcile/platform.h"
#include "tenants/policies.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

class Admission {
 public:
  struct Options {
    bool has_airways = true;
    bool has_flights = true;
    tenants::Policies& policies;  // For Flights.
    AsHost cluster_flights = AsHost::Refused;
  };
  // `platform`: that of the controllers. `shared` replaces its member of that name; its requests
  // are sent whether or not this host leads.
  Admission(const Platform& platform, const reconcile::Platform& shared,
            admission::Webhooks& webhooks, Options options);
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  ~Admission();

  // Does nothing if webhooks are off.
  void start();
  // Starts to protect children, too (child_protection.h).
  void lead();
  [[nodiscard]] Result<> check_protection(std::string_view policy) const;
  [[nodiscard]] io::Task<void> stop();

 private:
  using DecisionTask = io::Task<Result<admission::Decision>>;
  [[nodiscard]] DecisionTask review_airway(admission::Review review, std::stop_token stop);
  [[nodiscard]] DecisionTask review_instance(admission::Review review, std::string airway_name,
                                             std::stop_token stop);
  // Writes an approval of the overrides, which the review's user may set.
  [[nodiscard]] io::Task<Result<>> approve(const admission::Review& review,
                                           const OverrideChange& change, std::stop_token stop);
  // Whether the user of the review may set these overrides, and whether they are valid.
  [[nodiscard]] io::Task<Result<>> check_overrides(const admission::Review& review,
                                                   const OverrideChange& change,
                                                   std::stop_token stop);
  // The newest known state; null when there is none.
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> find_airway(std::string name,
                                                              std::stop_token stop);
  // As prepare(), with errors in yoke's words. `role`: "flight" or "converter".
  [[nodiscard]] io::Task<Result<FlightModule>> prepare_as(std::string_view role,
                                                          modules::Source source,
                                                          std::stop_token stop);
  [[nodiscard]] io::Task<Result<FlightModule>> prepare(modules::Source source,
                                                       std::stop_token stop);
  // `airway` outlives the task.
  [[nodiscard]] io::Task<Result<FlightModule>> module_for(ModuleRole role, modules::Source source,
                                                          const json::Value& airway,
                                                          std::stop_token stop);
  // A failed conversion is an answer, too. InvalidInput if the body is not a ConversionReview.
  [[nodiscard]] io::Task<Result<std::string>> convert(std::string body, std::string airway_name,
                                                      std::stop_token stop);
  // Into how many parts a conversion that is counted already may be split.
  [[nodiscard]] std::size_t conversion_parts_max() const;
  [[nodiscard]] io::Task<Result<std::string>> answer_conversion(
      std::shared_ptr<const admission::ConversionReview> review, std::vector<std::string> bodies,
      std::string airway_name, std::stop_token stop);
  // Runs the converter once for the body of each part of the review, at the same time, and returns
  // what it printed. `review` outlives the task.
  [[nodiscard]] io::Task<Result<std::vector<std::string>>> run_converter(
      const admission::ConversionReview& review, std::vector<std::string> bodies,
      std::string airway_name, std::stop_token stop);
  // A run of a converter. All references outlive the task.
  [[nodiscard]] io::Task<Result<abi::flight::Output>> run_recorded(
      const json::Value& airway, std::string event, const std::string& module_sha256,
      io::Task<Result<abi::flight::Output>> run);
  [[nodiscard]] io::Task<Result<>> rehearse_crd(const Airway& airway, std::stop_token stop);
  [[nodiscard]] io::Task<void> protect_children();
  void start_airways();
  void on_airway(const kube::Delta& delta);

  gateway::Authorizer authorizer_;
  const Platform platform_;
  admission::Webhooks& webhooks_;
  const bool has_airways_;
  ConversionRecorder conversions_;
  Counter& failed_conversions_;
  std::size_t conversion_count_ = 0;  // Under way.
  std::unique_ptr<kube::Cache::Subscription> airways_;
  ReviewSlots slots_;
  ReviewModules modules_;
  TokenBucket unproven_approvals_;          // For users that unauthenticated senders name.
  std::optional<FlightAdmission> flights_;  // Nothing if Flights are off.
  std::stop_source stop_;
  std::optional<io::OneShot<bool>> protected_;  // Set when protect_children() has finished.
};

// The webhook configuration for the instances of one Airway; std::nullopt if the Airway is invalid
// or being deleted.
[[nodiscard]] std::optional<admission::Registration> registration_of(const json::Value& airway);

}  // namespace hangar::airways
