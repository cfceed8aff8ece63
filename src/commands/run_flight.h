// Runs a flight once, like the reconcile of an instance, and prints the resources that it would
// apply. For authors of flights, and for CI.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/streams.h"
#include "host/config.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hangar::commands {

struct RunFlightOptions {
  std::string module;  // A URL or a file, as in an Airway.
  // The custom resource as JSON or YAML; the flight's stdin has it as JSON. White space only: no
  // resource, and an empty stdin.
  std::string input;
  std::string release = {};     // Empty: the name for the resource, or "flight".
  std::string namespace_ = {};  // Empty: the resource's, or "default".
  std::vector<std::string> args = {};
  std::string checksum = {};
  bool insecure = false;
  bool cluster_access = false;  // Answer lookups from the cluster.
  std::vector<std::string> resource_access_matchers = {};
  bool diff = false;                    // Print differences from the cluster, not the resources.
  std::size_t diff_context = 4;         // Lines around each change.
  std::chrono::nanoseconds timeout{0};  // Zero: 10 s.
  std::uint64_t memory_mib_max = 0;     // Zero: the host's default.
  Say show = {};                        // As FlightToRun::show.
};

struct RunFlightOutput {
  std::string text;         // For stdout: YAML documents, or the differences.
  std::string stderr_text;  // The flight's stderr.
};

// Uses the cluster only with `cluster_access` or `diff`. Errors: those in the status of an
// instance.
[[nodiscard]] Result<RunFlightOutput> run_flight(const host::Config& config,
                                                 RunFlightOptions options, const Log& log);

}  // namespace hangar::commands
