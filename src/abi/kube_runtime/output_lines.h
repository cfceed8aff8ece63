// The output of one guest in one turn, as lines in the order in which they ended.
#pragma once

#include "wasm/wasi/preview1.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::kube_runtime {

using OutputStream = wasm::wasi::OutputStream;

// Without its newline. The bytes are the guest's, so they need not be text.
struct OutputLine {
  OutputStream stream = OutputStream::Stdout;
  std::string text;

  friend bool operator==(const OutputLine&, const OutputLine&) = default;
};

class OutputLines {
 public:
  struct Taken {
    std::vector<OutputLine> lines;
    std::uint64_t dropped_bytes = 0;
  };

  // `bytes_max` is for one turn, newlines included.
  explicit OutputLines(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Cuts lines at kOperatorLineBytesMax; output beyond the bound of the turn is only counted.
  void print(OutputStream stream, std::string_view bytes);

  // Called at the end of a turn: returns everything, an unfinished line included.
  [[nodiscard]] Taken take();

 private:
  void end_line(OutputStream stream);

  const std::uint64_t bytes_max_;
  std::uint64_t kept_bytes_ = 0;
  std::array<std::string, 2> open_;  // The unfinished line of each stream.
  Taken taken_;
};

}  // namespace hangar::abi::kube_runtime
