// What releases there are, what they were, and how two of their revisions differ: what yoke's
// command blackbox prints.
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
  ReleaseName release;            // Without a name: all. Without a namespace: of all.
  std::size_t revision = 0;       // Counted from one; zero: all of them.
  std::size_t compared_with = 0;  // Another revision; zero: none.
  std::size_t context_lines = 4;  // Around each difference.
  Color color = Color::None;      // Of differences.
};

struct Shown {
  std::string text;
  std::vector<std::string> warnings;  // What could not be read.
};

// Errors: NotFound (release, revision), InvalidInput (a name in more than one namespace), and those
// of reading.
[[nodiscard]] Result<Shown> blackbox(const host::Config& config, const BlackboxOptions& options,
                                     const Log& log);

}  // namespace hangar::commands
