#include "output/printout.h"

#include "base/log.h"
#include "base/time.h"
#include "io/loop.h"
#include "output/limits.h"
#include "output/log_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::output {

Printout::Printout(const Sinks& sinks, LogFiles::Owner owner, std::uint64_t bytes_per_second,
                   std::string bound)
    : sinks_(sinks),
      owner_(std::move(owner)),
      bound_(std::move(bound)),
      allowance_(bytes_per_second) {}

void Printout::keep(std::span<const Line> lines, std::uint64_t dropped_bytes) {
  const Instant now = io::Loop::now();
  const WallTime time = io::Loop::wall_now();
  std::string text;
  const auto write = [&](const Line& line, std::string_view formatted) {
    sinks_.log.info("output", {{"resource", owner_.resource},
                               {"namespace", owner_.key.namespace_},
                               {"name", owner_.key.name},
                               {"stream", line.stream},
                               {"text", line.text}});
    text += formatted;
  };
  bool is_full = false;
  for (const Line& line : lines) {
    // Later lines would have no room either, and a guest may print very many lines.
    if (is_full) {
      allowance_.drop(line.text.size() + 1);
      continue;
    }
    const std::string formatted =
        LogFiles::format({.time = time, .stream = line.stream, .text = line.text});
    std::optional<std::string> refused;
    if (!allowance_.take(formatted.size(), now)) {
      refused = bound_;
    } else {
      refused = sinks_.files.allowances().refuse(owner_.key.namespace_, formatted.size(), now);
    }
    if (refused) {
      allowance_.drop(line.text.size() + 1);
      dropped_by_ = *std::move(refused);
      is_full = true;
    } else {
      write(line, formatted);
    }
  }
  if (dropped_bytes > 0) dropped_by_ = bound_;
  allowance_.drop(dropped_bytes);
  if (const std::optional<std::uint64_t> dropped = allowance_.tell_dropped(now)) {
    const std::string told = fmt::format("[{} more bytes were dropped: {}]", *dropped, dropped_by_);
    const Line line{.stream = "stderr", .text = told};
    write(line, LogFiles::format({.time = time, .stream = line.stream, .text = line.text}));
  }
  // A timer reports them, because the guest may never print again.
  if (allowance_.has_untold()) {
    timer_ = sinks_.loop.after(std::chrono::seconds(1), [this] { keep({}, 0); });
  }
  if (!text.empty()) sinks_.files.append(owner_, std::move(text));
}

std::vector<Printout::Line> lines_of(std::string_view stream, std::string_view text) {
  std::vector<Printout::Line> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::size_t length = std::min<std::size_t>(end, limits::kPrintedLineBytesMax);
    lines.push_back({.stream = stream, .text = text.substr(0, length)});
    // A line end that follows at once belongs to the cut line.
    text.remove_prefix(length < text.size() && text[length] == '\n' ? length + 1 : length);
  }
  return lines;
}

}  // namespace hangar::output
