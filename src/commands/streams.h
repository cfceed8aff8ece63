// What yoke's commands say, and how they end.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hangar::commands {

// How a command ended that did not fail. A warning is for the standard error.
struct Finished {
  std::string warning = {};
};

// What it has done, for people.
using Say = std::function<void(std::string_view text)>;

// Where it says what.
struct Streams {
  Say out;  // The standard output.
  Say say;  // The standard error.
};

}  // namespace hangar::commands
