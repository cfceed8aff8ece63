// Makes the source of a flight out of a Helm chart. The generator is a Go program, since Helm's own
// packages read charts best; it is part of the SDK, whose source this program has in itself.
// Whoever builds a flight has the go tool that runs it.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string>

namespace hangar::commands {

struct FlightFromChartOptions {
  std::filesystem::path chart = {};  // A directory, or a .tgz.
  std::filesystem::path out = {};    // Made; it may exist if it is empty.
  std::string module = {};           // Of Go; empty: the chart's name.
  std::string kube_version = {};     // Empty: that of Helm's packages.
  bool include_crds = false;
  bool no_hooks = false;
};

// Errors: NotFound (no go), InvalidInput (the chart or an option is wrong; the generator's words
// are on stderr).
[[nodiscard]] Result<> flight_from_chart(const FlightFromChartOptions& options);

}  // namespace hangar::commands
