#include "cli/terminal.h"

#include "base/result.h"
#include "io/descriptor.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hangar::cli {

namespace {

// Switches to the alternate screen and hides the cursor; and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";

void write(std::string_view text) {
  // read() detects that the terminal is gone.
  (void)io::write_all(STDOUT_FILENO, text);
}

}  // namespace

bool Terminal::is_there() {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

Terminal::Terminal() {
  ::tcgetattr(STDIN_FILENO, &before_);
  ::termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  write(kEnter);
}

Terminal::~Terminal() {
  write(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

Terminal::Size Terminal::size() {
  ::winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {.columns = size.ws_col, .lines = size.ws_row};
}

Result<std::string> Terminal::read() {
  std::string text;
  while (true) {
    ::pollfd ready{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 0) <= 0) return text;
    std::array<char, 256> piece{};
    const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(ErrorKind::NotFound, "the terminal is gone");
    text.append(piece.data(), static_cast<std::size_t>(count));
    constexpr std::size_t kAtOnce = 4096;
    if (text.size() >= kAtOnce) return text;
  }
}

void Terminal::draw(std::span<const Line> lines) {
  std::string out = "\x1b[H";
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (at > 0) out += "\r\n";
    if (lines[at].is_marked) out += "\x1b[7m";
    out += lines[at].text;
    if (lines[at].is_marked) out += "\x1b[0m";
    out += "\x1b[K";
  }
  write(out);
}

}  // namespace hangar::cli
