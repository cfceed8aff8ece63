// The table of `hangar top`: its content, and the effect of keys. No I/O: takes keys and rows,
// returns lines. Other users choose the names, so everything but printable ASCII is escaped.
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
// "cpu", "turns", ...; nothing if there is no such column.
[[nodiscard]] std::optional<TopColumn> top_column(std::string_view word);
// The names of the columns, for help.
[[nodiscard]] std::vector<std::string> top_column_names();

// Largest first, and by name if values are equal; TopColumn::Name sorts from a to z.
void sort_rows(std::vector<seeing::TopRow>& rows, TopColumn by);

// The whole table, for a file or a pipe.
[[nodiscard]] std::string top_text(seeing::FoundTop found, TopColumn by);

[[nodiscard]] std::string top_json(const seeing::FoundTop& found);

// A key of the terminal.
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
// Takes the first key from the bytes that were read. Nothing: the sequence is incomplete, and stays
// in `input`. Unknown keys are dropped. `is_all`: no more bytes follow immediately, so a single
// escape byte is the Escape key.
[[nodiscard]] std::optional<Key> take_key(std::string& input, bool is_all);

// The live screen.
class TopScreen {
 public:
  struct Size {
    std::size_t columns = 80;
    std::size_t lines = 24;
  };
  struct Quit {};
  struct Open {
    seeing::GuestKey guest;  // The guest whose turns to show.
  };
  using Wish = std::variant<std::monostate, Quit, Open>;

  explicit TopScreen(TopColumn by) : by_(by) {}

  // Shows new rows; the selection stays on its guest.
  void update(seeing::FoundTop found);
  // The error of the last request; empty: none.
  void set_problem(std::string problem) { problem_ = std::move(problem); }
  // Shows a text instead of the table, until Escape or q.
  void show_text(std::string_view title, std::string_view text);
  void resize(Size size);
  [[nodiscard]] Wish on_key(const Key& key);

  // The lines of the screen: as many as it has, none wider than it, with the selection marked.
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
  [[nodiscard]] std::size_t first_max(std::size_t count) const;
  [[nodiscard]] std::vector<Line> table_lines() const;

  seeing::FoundTop found_;
  std::vector<seeing::TopRow> shown_;  // Rows that pass the filter, sorted.
  TopColumn by_;
  std::string filter_;
  bool is_filtering_ = false;
  std::size_t selected_ = 0;
  std::size_t first_ = 0;  // The first row on the screen.
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
