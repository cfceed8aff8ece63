// The table of `hangar top`: what is shown, and what keys do to it. No I/O: keys and rows in, lines
// out. Names are other people's: all but printable ASCII is escaped.
#pragma once

#include "seeing/top.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::commands {

enum class TopColumn : std::uint8_t {
  Cpu,
  Turns,
  Calls,
  Written,
  Memory,
  Disk,
  Restarts,
  Name,
};
// "cpu", "turns", ...; nothing for other words.
[[nodiscard]] std::optional<TopColumn> top_column(std::string_view word);
// The words, for help.
[[nodiscard]] std::vector<std::string> top_column_names();

// The largest first; names from a to z. Of equals by name.
void sort_rows(std::vector<seeing::TopRow>& rows, TopColumn by);

// All of it, for whoever reads on.
[[nodiscard]] std::string top_text(seeing::FoundTop found, TopColumn by);

[[nodiscard]] std::string top_json(const seeing::FoundTop& found);

// What a terminal sends for a key.
struct Key {
  enum class Kind : std::uint8_t {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    Letter,
  };
  Kind kind = Kind::Letter;
  char letter = 0;  // Printable ASCII.

  friend bool operator==(const Key&, const Key&) = default;
};
// Takes the first key out of what has come. Nothing: it is not whole yet, and stays; what is no key
// that anybody knows is dropped. `is_all`: nothing follows at once, so that a lone escape is one.
[[nodiscard]] std::optional<Key> take_key(std::string& input, bool is_all);

// What is on the screen while somebody looks.
class TopScreen {
 public:
  struct Size {
    std::size_t columns = 80;
    std::size_t lines = 24;
  };
  struct Quit {};
  struct Open {
    seeing::GuestKey guest;  // Its turns are to be shown.
  };
  using Wish = std::variant<std::monostate, Quit, Open>;

  explicit TopScreen(TopColumn by) : by_(by) {}

  // The selection stays on its guest.
  void update(seeing::FoundTop found);
  // What went wrong with the last look; empty: nothing.
  void set_problem(std::string problem) { problem_ = std::move(problem); }
  // In place of the table, until escape or q.
  void show_text(std::string_view title, std::string_view text);
  void resize(Size size);
  [[nodiscard]] Wish on_key(const Key& key);

  // As many lines as the screen has, each no wider than it; with the selection marked.
  struct Line {
    std::string text;
    bool is_marked = false;
  };
  [[nodiscard]] std::vector<Line> lines() const;

 private:
  [[nodiscard]] Wish on_key_in_table(const Key& key);
  void on_key_in_filter(const Key& key);
  void on_key_in_text(const Key& key);
  void arrange();
  void move(std::ptrdiff_t by);
  [[nodiscard]] std::size_t room() const;
  [[nodiscard]] std::vector<Line> table_lines() const;

  seeing::FoundTop found_;
  std::vector<seeing::TopRow> shown_;  // Those that the filter leaves, sorted.
  TopColumn by_;
  std::string filter_;
  bool is_filtering_ = false;
  std::size_t selected_ = 0;
  std::size_t first_ = 0;  // At the top of the screen.
  Size size_;
  std::string problem_;

  struct Text {
    std::string title;
    std::vector<std::string> lines;
    std::size_t first = 0;
  };
  std::optional<Text> text_;
};

}  // namespace hangar::commands
