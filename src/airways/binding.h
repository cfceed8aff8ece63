// What an instance is evaluated with, once its module can run.
#pragma once

#include "airways/airway.h"
#include "airways/flight_modules.h"
#include "airways/terms.h"

#include <memory>

namespace hangar::airways {

struct Binding {
  Terms terms;
  FlightModule module;
  // Nobody has taken the module over deliberately: a release that other bytes under the same URL
  // have made, as those of another program, is left as it is.
  bool is_first_use = false;
  std::shared_ptr<const Airway> airway = nullptr;  // Whose instance it is. Null: it is a Flight.
};

}  // namespace hangar::airways
