// What machines print, as lines of the host's log. The bound of their namespace applies, which they
// share with its other guests: a machine may print in each of any number of steps.
//
// Loop thread only.
#pragma once

#include "base/log.h"
#include "base/time.h"
#include "kube/object.h"
#include "output/allowance.h"
#include "output/limits.h"
#include "output/namespace_allowances.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::workflows {

class MachineOutput {
 public:
  // `allowances` outlives this object.
  MachineOutput(output::NamespaceAllowances& allowances, Log log)
      : allowances_(allowances), log_(std::move(log)) {}

  // Lines beyond the bound are dropped, and the log says how many bytes that were.
  void keep(const kube::ObjectKey& workflow, std::string_view text, Instant now);

 private:
  struct Dropped {
    output::Allowance bytes{limits::kNamespaceOutputBytesPerSecond};
    std::string bound;  // The one that the last refusal named.
  };

  output::NamespaceAllowances& allowances_;
  const Log log_;
  std::map<std::string, Dropped> dropped_;  // By namespace; only where something was dropped.
};

}  // namespace hangar::workflows
