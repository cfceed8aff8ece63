// The command line of `hangar`: parses it and runs the command.
#pragma once

#include <cstdint>
#include <string_view>

namespace hangar::cli {

// The program that this one was started as, by the last segment of argv[0]. Under the other names
// it replaces the original (yoke_program.h, atc_program.h, argocd_command.h).
enum class ProgramName : std::uint8_t { Hangar, Yoke, Atc, Yokecd };
[[nodiscard]] ProgramName program_name(std::string_view argv0);

// Returns the exit code: 0 success; 1 failure; 2 wrong command line. Errors go to stderr.
[[nodiscard]] int run(int argc, char** argv);

}  // namespace hangar::cli
