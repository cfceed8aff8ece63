// The terms and the module that an instance is evaluated with.
#pragma once

#include "airways/airway.h"
#include "airways/flight_modules.h"
#include "airways/terms.h"

#include <memory>

namespace hangar::airways {

struct Binding {
  Terms terms;
  FlightModule module;
  // This is the first module pinned for its URL: nobody has approved another one. If the release's
  // history names other bytes for the URL (another program may have made it), the evaluation fails
  // and leaves the release as it is.
  bool is_first_use = false;
  std::shared_ptr<const Airway> airway = nullptr;  // Null for a Flight.
};

}  // namespace hangar::airways
