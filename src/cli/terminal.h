// A terminal as a screen of lines, and keys without waiting for the end of a line.
#pragma once

#include "base/result.h"

#include <termios.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hangar::cli {

// From construction to destruction the screen is this program's; afterwards it is as it was.
class Terminal {
 public:
  // Whether both streams are one.
  [[nodiscard]] static bool is_there();

  Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  struct Size {
    std::size_t columns = 80;
    std::size_t lines = 24;
  };
  [[nodiscard]] static Size size();
  // What has been typed, without waiting. NotFound when nobody types there any more.
  [[nodiscard]] static Result<std::string> read();

  struct Line {
    std::string_view text;  // Printable ASCII, no wider than the screen.
    bool is_marked = false;
  };
  static void draw(std::span<const Line> lines);

 private:
  ::termios before_{};
};

}  // namespace hangar::cli
