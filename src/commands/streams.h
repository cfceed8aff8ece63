// The output and the results of yoke's commands.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hangar::commands {

// The result of a successful command. The warning is for stderr.
struct Finished {
  std::string warning = {};
};

// Receives messages for people.
using Say = std::function<void(std::string_view text)>;

// The output streams of a command.
struct Streams {
  Say out;  // stdout.
  Say say;  // stderr.
};

}  // namespace hangar::commands
