// The command line of `hangar`: what each command takes, and what it does.
#pragma once

#include <cstdint>
#include <string_view>

namespace hangar::cli {

// As which program this one was started, by the last part of argv[0]: under these names it stands
// in for the original (yoke_program.h, atc_program.h).
enum class ProgramName : std::uint8_t { Hangar, Yoke, Atc };
[[nodiscard]] ProgramName program_name(std::string_view argv0);

// Returns the exit code: 0 done; 1 it failed; 2 the command line is wrong. Errors go to stderr.
[[nodiscard]] int run(int argc, char** argv);

}  // namespace hangar::cli
