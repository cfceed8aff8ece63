// Replaces the program of this process in place: what the new program needs of the old one passes
// through descriptors that it inherits.
//
// A process that is told to (SIGUSR2) stops, writes a manifest of its sleeping operators to an
// unnamed file in memory, and executes its program's file again, which may be a new version by now.
// Process id and arguments stay, and so the identity that holds the Lease.
#pragma once

#include "base/result.h"
#include "io/descriptor.h"
#include "operators/carried_operator.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace hangar::host {

// What the program before this one has left.
struct Inheritance {
  std::optional<operators::CarriedFleet> fleet;
  std::string problem;  // Why there is none although there should be one; empty otherwise.
};
// Takes it, once. Nothing if this process did not begin so. Call it before any thread or program is
// started: they must not inherit the descriptors.
[[nodiscard]] Inheritance take_inheritance();

class Successor {
 public:
  // Unavailable when the manifest cannot be written.
  [[nodiscard]] static Result<Successor> make(std::filesystem::path program,
                                              operators::CarriedFleet fleet);

  // Executes the program with the arguments of this process. Call it when nothing else of this
  // process is left. Returns only if that fails, with the reason.
  [[nodiscard]] Error exec() const;

 private:
  Successor(std::filesystem::path program, operators::CarriedFleet fleet, io::Descriptor manifest)
      : program_(std::move(program)), fleet_(std::move(fleet)), manifest_(std::move(manifest)) {}

  std::filesystem::path program_;
  operators::CarriedFleet fleet_;  // Has the descriptors that the manifest names.
  io::Descriptor manifest_;
};

}  // namespace hangar::host
