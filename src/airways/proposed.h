// What reviews of Airways, instances and Flights have in common: which of them pass unseen, and the
// evaluation of an object that is only proposed.
//
// An evaluation runs the flight on the proposed object, as the identity that reconciles it, and
// rehearses what it printed: what is accepted could be carried out at that moment. It changes
// nothing, and nothing of what reconciles remember.
// Loop thread only.
#pragma once

#include "admission/review.h"
#include "airways/acting.h"
#include "airways/binding.h"
#include "airways/ownership.h"
#include "airways/platform.h"
#include "airways/rehearsal.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

inline constexpr std::string_view kValidationsPath = "/validations/";

// What a configuration asks for: objects of these resources that are created or updated, but for
// those that are being deleted. So what goes never waits for a host that is not there.
[[nodiscard]] json::Array reviewed_rules(std::string_view group, std::string_view version,
                                         const std::vector<std::string_view>& plurals);
[[nodiscard]] json::Array reviewed_conditions();

// What is being deleted, and what only finalizers and owners change, passes without a module.
[[nodiscard]] bool passes_unseen(const admission::Review& review);

// How the output of a proposal's flight is looked at.
enum class LookAt : std::uint8_t {
  Cluster,  // Rehearsed as the actor.
  Output,   // Form, kinds and namespaces only: nothing is done with the actor's rights.
};

struct Proposal {
  const Platform& platform;
  const admission::Review& review;
  std::shared_ptr<const Binding> binding;
  const Release& release;
  const Actor& actor;
  std::string consumer;  // For whom the flight runs: within the namespace of the object.
  LookAt look_at = LookAt::Cluster;
};
// Everything it is given lives until the task ends. Accepted with the API server's warnings about
// resources, and one for each that could not be rehearsed; an error is a refusal. A sender that may
// be anybody is not told what a flight made of objects that it looked up and that are remembered.
[[nodiscard]] io::Task<Result<admission::Decision>> evaluate_proposed(Proposal proposal,
                                                                      std::stop_token stop);

}  // namespace hangar::airways
