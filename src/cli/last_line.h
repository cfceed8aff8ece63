// Shows what a command is doing, on the last line of the terminal.
#pragma once

#include "commands/streams.h"

#include <string_view>

namespace hangar::cli {

// In place of the text before; an empty text frees the line.
void show_on_last_line(std::string_view text);

// The same if standard error is a terminal, else null.
[[nodiscard]] commands::Say last_line();

}  // namespace hangar::cli
