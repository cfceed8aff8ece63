// Processes one guest's output: lines are made safe, rate-limited, written to the host's log and
// kept for `hangar logs`. Dropped output is counted and reported.
//
// Loop thread only.
#pragma once

#include "base/log.h"
#include "io/loop.h"
#include "output/allowance.h"
#include "output/log_files.h"
#include "output/log_writer.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::output {

class Printout {
 public:
  // The sinks outlive the Printout.
  struct Sinks {
    io::Loop& loop;
    LogWriter& files;
    const Log& log;
  };
  // `bound`: the name of the setting that bounds the output, for people.
  Printout(const Sinks& sinks, LogFiles::Owner owner, std::uint64_t bytes_per_second,
           std::string bound);
  Printout(const Printout&) = delete;
  Printout& operator=(const Printout&) = delete;
  ~Printout() = default;

  struct Line {
    std::string_view stream;
    std::string_view text;
  };
  // `dropped_bytes`: output that was dropped earlier.
  void keep(std::span<const Line> lines, std::uint64_t dropped_bytes);

  // True when destroying and recreating it would make no difference.
  [[nodiscard]] bool is_as_new() { return allowance_.is_as_new(io::Loop::now()); }

 private:
  const Sinks sinks_;
  const LogFiles::Owner owner_;
  const std::string bound_;
  Allowance allowance_;
  std::string dropped_by_;  // The bound that dropped the last line.
  io::Loop::Timer timer_;   // Runs while there is something to report.
};

// The lines of a text, each of at most limits::kPrintedLineBytesMax.
[[nodiscard]] std::vector<Printout::Line> lines_of(std::string_view stream, std::string_view text);

}  // namespace hangar::output
