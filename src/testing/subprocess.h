// Other programs, run by tests: control-plane scripts, kubectl, the built hangar.
#pragma once

#include "base/result.h"

#include <chrono>
#include <string>
#include <vector>

namespace hangar::testing {

struct Command {
  std::vector<std::string>
      arguments;      // The first is the program, looked up in PATH unless it has a slash.
  std::string input;  // Its whole standard input.
  std::vector<std::string> environment;  // "NAME=value", added to this process's environment.
  std::chrono::seconds deadline{60};     // It is killed after that.
};

struct Finished {
  int exit_code = 0;  // 128 + the signal's number if a signal killed it, as in shells.
  std::string output;
  std::string errors;
};

// Runs a program until it exits. Any exit code is success here: the caller checks it. Errors:
// NotFound if it cannot be started, LimitExceeded if it did not exit in time.
[[nodiscard]] Result<Finished> run(const Command& command);

}  // namespace hangar::testing
