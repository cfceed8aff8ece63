// The command line of `hangar`: what each command takes, and what it does.
#pragma once

namespace hangar::cli {

// Returns the exit code: 0 done; 1 it failed; 2 the command line is wrong. Errors go to stderr.
[[nodiscard]] int run(int argc, char** argv);

}  // namespace hangar::cli
