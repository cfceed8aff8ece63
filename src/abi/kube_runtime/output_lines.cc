#include "abi/kube_runtime/output_lines.h"

#include "abi/kube_runtime/limits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::abi::kube_runtime {

void OutputLines::print(OutputStream stream, std::string_view bytes) {
  const std::string_view kept = bytes.substr(0, bytes_max_ - kept_bytes_);
  kept_bytes_ += kept.size();
  taken_.dropped_bytes += bytes.size() - kept.size();

  std::string& line = open_[static_cast<std::size_t>(stream)];
  std::string_view rest = kept;
  while (!rest.empty()) {
    const std::size_t newline = rest.find('\n');
    const bool has_end = newline != std::string_view::npos;
    std::string_view part = rest.substr(0, newline);
    rest.remove_prefix(part.size() + (has_end ? 1 : 0));
    while (!part.empty()) {
      if (line.size() == limits::kOperatorLineBytesMax) end_line(stream);
      const std::string_view fitting = part.substr(0, limits::kOperatorLineBytesMax - line.size());
      line += fitting;
      part.remove_prefix(fitting.size());
    }
    if (has_end) end_line(stream);
  }
}

OutputLines::Taken OutputLines::take() {
  for (const OutputStream stream : {OutputStream::Stdout, OutputStream::Stderr}) {
    if (!open_[static_cast<std::size_t>(stream)].empty()) end_line(stream);
  }
  kept_bytes_ = 0;
  return std::exchange(taken_, {});
}

void OutputLines::end_line(OutputStream stream) {
  std::string& line = open_[static_cast<std::size_t>(stream)];
  taken_.lines.push_back({.stream = stream, .text = std::exchange(line, {})});
}

}  // namespace hangar::abi::kube_runtime
