// What one guest prints in one turn, as lines in the order that they were ended.
#pragma once

#include "wasm/wasi/preview1.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::kube_runtime {

using OutputStream = wasm::wasi::OutputStream;

// Without its newline. The guest's bytes as they are: not necessarily text.
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

  // `bytes_max`: of a turn, newlines counted.
  explicit OutputLines(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Lines are cut at kOperatorLineBytesMax; what is beyond the turn's bound is counted only.
  void print(OutputStream stream, std::string_view bytes);

  // At the end of a turn: all of it, lines without an end too.
  [[nodiscard]] Taken take();

 private:
  void end_line(OutputStream stream);

  const std::uint64_t bytes_max_;
  std::uint64_t kept_bytes_ = 0;
  std::array<std::string, 2> open_;  // The line that has no end yet, by stream.
  Taken taken_;
};

}  // namespace hangar::abi::kube_runtime
