// A guest's output of one turn: whatever it says of a panic is printable, bounded and from stderr.
#include "abi/kube_runtime/last_words.h"
#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/output_lines.h"
#include "base/assert.h"
#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace limits = hangar::limits;
using hangar::abi::kube_runtime::OutputLine;
using hangar::abi::kube_runtime::OutputStream;

// One line of output a line; those that begin with a byte 1 are from stdout.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<OutputLine> output;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    const bool is_stdout = line.starts_with('\1');
    if (is_stdout) line.remove_prefix(1);
    output.push_back({.stream = is_stdout ? OutputStream::Stdout : OutputStream::Stderr,
                      .text = std::string(line)});
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }

  const std::string words = hangar::abi::kube_runtime::last_words(output);

  constexpr std::size_t kAround = 32;  // " (", " at ", ")" and "..." after each part.
  HANGAR_ASSERT(
      words.size() <= limits::kPanicReasonBytesMax + 2 * limits::kPanicPlaceBytesMax + kAround,
      "bounded");
  HANGAR_ASSERT(words == hangar::printable(words), "printable");
  const bool has_panic = std::ranges::any_of(output, [](const OutputLine& line) {
    const std::string_view text = line.text;
    return line.stream == OutputStream::Stderr &&
           (text.starts_with("panic: ") || text.starts_with("fatal error: ") ||
            (text.starts_with("thread '") && text.contains("panicked at ")));
  });
  HANGAR_ASSERT(words.empty() != has_panic, "the words of a panic");
  return 0;
}
