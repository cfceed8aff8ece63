// Runs a flight once, as an instance's reconcile would, and shows what it would apply: for people
// who write flights, and for CI.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hangar::commands {

struct RunFlightOptions {
  std::string module;  // As in an Airway: a URL or a file.
  // The custom resource as JSON or YAML; becomes the flight's stdin as JSON. White space: none, and
  // an empty stdin.
  std::string input;
  std::string release = {};  // Empty: as the resource's own would be named; without one "flight".
  std::string namespace_ = {};  // Empty: the resource's, else "default".
  std::vector<std::string> args = {};
  std::string checksum = {};
  bool insecure = false;
  bool cluster_access = false;  // Lookups are answered from the cluster of the configuration.
  std::vector<std::string> resource_access_matchers = {};
  bool diff = false;  // Against what the cluster has, instead of the resources themselves.
  std::size_t diff_context = 4;         // Lines around each change.
  std::chrono::nanoseconds timeout{0};  // Zero: 10 s.
  std::uint64_t memory_mib_max = 0;     // Zero: the host's default.
};

struct RunFlightOutput {
  std::string text;         // For stdout: YAML documents, or the differences.
  std::string stderr_text;  // What the flight wrote to its standard error.
};

// Offline unless the cluster is asked for. Errors as an instance's status would have them.
[[nodiscard]] Result<RunFlightOutput> run_flight(const host::Config& config,
                                                 RunFlightOptions options, const Log& log);

}  // namespace hangar::commands
