#include "abi/kube_runtime/last_words.h"

#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/output_lines.h"
#include "base/text.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hangar::abi::kube_runtime {

namespace {

// Go prints each function of a goroutine's stack on a line, and its place on the next one:
//
//   main.(*Job).Run(0x1)
//     example.com/cmd/main.go:94 +0x2
struct Frame {
  std::string_view function;
  std::string_view place;
};

// Returns the frame of a function's line and the line after it; empty if they are none.
Frame frame_of(std::string_view function, std::string_view place) {
  const std::size_t arguments = function.rfind('(');
  if (arguments == std::string_view::npos || arguments == 0 || !place.starts_with('\t')) return {};
  place.remove_prefix(1);
  return {.function = function.substr(0, arguments), .place = place.substr(0, place.find(" +0x"))};
}

// The function that panicked, in the first goroutine of `lines`: the first one that is not of Go's
// runtime. A function that recovers and panics again has frames before those of the first panic, so
// the frames after the last panic() count.
Frame panicking(std::span<const OutputLine> lines) {
  Frame found;
  bool is_in_goroutine = false;
  for (std::size_t index = 0; index + 1 < lines.size(); ++index) {
    const std::string_view line = lines[index].text;
    if (!is_in_goroutine) {
      is_in_goroutine = line.starts_with("goroutine ");
      continue;
    }
    if (line.empty() || line.starts_with("created by ")) break;
    const Frame frame = frame_of(line, lines[index + 1].text);
    if (frame.function == "panic") found = {};
    const bool is_of_runtime = frame.function == "panic" || frame.function.starts_with("runtime.");
    if (found.function.empty() && !is_of_runtime) found = frame;
  }
  return found;
}

std::string words_of_go(std::span<const OutputLine> from) {
  std::string words = printable(from.front().text, limits::kPanicReasonBytesMax);
  if (const Frame frame = panicking(from); !frame.function.empty()) {
    words += " (" + printable(frame.function, limits::kPanicPlaceBytesMax) + " at " +
             printable(frame.place, limits::kPanicPlaceBytesMax) + ")";
  }
  return words;
}

// "thread 'main' panicked at src/main.rs:5:9:", and the reason on the next line.
std::string words_of_rust(std::span<const OutputLine> from, std::size_t place) {
  std::string words =
      printable(std::string_view(from.front().text).substr(place), limits::kPanicPlaceBytesMax);
  if (from.size() > 1 && words.ends_with(':')) {
    words += " " + printable(from[1].text, limits::kPanicReasonBytesMax);
  }
  return words;
}

}  // namespace

std::string last_words(std::span<const OutputLine> output) {
  for (std::size_t index = 0; index < output.size(); ++index) {
    const std::string_view line = output[index].text;
    if (output[index].stream != OutputStream::Stderr) continue;
    if (line.starts_with("panic: ") || line.starts_with("fatal error: ")) {
      return words_of_go(output.subspan(index));
    }
    if (const std::size_t at = line.find("panicked at ");
        line.starts_with("thread '") && at != std::string_view::npos) {
      return words_of_rust(output.subspan(index), at);
    }
  }
  return {};
}

}  // namespace hangar::abi::kube_runtime
