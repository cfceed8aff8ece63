// Generates the source of a flight from a Helm chart. The generator is a Go program, since Helm's
// own packages read charts best. It is part of the SDK, whose source is linked into this program.
// Authors of flights have the go tool, which runs the generator.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string>

namespace hangar::commands {

struct FlightFromChartOptions {
  std::filesystem::path chart = {};  // A directory, or a .tgz.
  std::filesystem::path out = {};    // Created; may exist if it is empty.
  std::string module = {};           // Name of the Go module; empty: the chart's name.
  std::string kube_version = {};     // Empty: the version of Helm's packages.
  bool include_crds = false;
  bool no_hooks = false;
};

// Errors: NotFound (no chart, no go), InvalidInput (wrong chart or option; the generator's messages
// are on stderr).
[[nodiscard]] Result<> flight_from_chart(const FlightFromChartOptions& options);

}  // namespace hangar::commands
