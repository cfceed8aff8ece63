// A terminal as a full screen of lines, with keys read one by one.
#pragma once

#include "base/result.h"

#include <termios.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hangar::cli {

// From construction to destruction this program has the screen; the destructor restores it.
class Terminal {
 public:
  // Whether stdin and stdout are terminals.
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
  // The bytes that have been typed, without waiting. NotFound when the terminal is gone.
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
