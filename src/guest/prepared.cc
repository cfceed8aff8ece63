#include "guest/prepared.h"

#include "abi/flight/evaluation.h"
#include "abi/kube_runtime/local_guest.h"
#include "abi/statemachine/program.h"
#include "guest/walls.h"

namespace hangar::guest {

Prepared::Prepared(const abi::flight::Runtime::AddFunctions& add_functions)
    : last_wall(compile_last_wall()),
      of_flights(abi::flight::Runtime::make_functions(engine_parts, add_functions)),
      of_operators(abi::kube_runtime::Runtime::make_functions(engine_parts)),
      of_machines(abi::statemachine::Programs::make_functions(engine_parts)) {
  for (const auto& functions :
       {of_flights.of_flights, of_flights.of_converters, of_operators, of_machines}) {
    functions->link_now();
  }
}

}  // namespace hangar::guest
