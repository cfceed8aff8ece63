// Lists releases and their revisions, and compares two revisions: the output of yoke's command
// blackbox.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/release_text.h"
#include "commands/releases.h"
#include "host/config.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hangar::commands {

struct BlackboxOptions {
  ReleaseName release;            // No name: all releases. No namespace: all namespaces.
  std::size_t revision = 0;       // Counted from one; zero: list all.
  std::size_t compared_with = 0;  // Another revision; zero: none.
  std::size_t context_lines = 4;  // Lines around each difference.
  Color color = Color::None;      // For differences.
};

struct Shown {
  std::string text;
  std::vector<std::string> warnings;  // Secrets that could not be read.
};

// Errors: NotFound (release, revision), InvalidInput (the name exists in several namespaces), and
// those of reading.
[[nodiscard]] Result<Shown> blackbox(const host::Config& config, const BlackboxOptions& options,
                                     const Log& log);

}  // namespace hangar::commands
