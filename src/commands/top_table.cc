#include "commands/top_table.h"

#include "base/text.h"
#include "base/time.h"
#include "commands/guest_names.h"
#include "commands/plain_table.h"
#include "commands/story_text.h"
#include "json/value.h"
#include "recorder/story_json.h"
#include "seeing/messages.h"
#include "seeing/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

using seeing::FoundTop;
using seeing::TopRow;

constexpr std::array<std::string_view, 8> kColumnNames = {"cpu",    "turns", "calls",    "written",
                                                          "memory", "disk",  "restarts", "name"};

std::uint64_t value_of(const TopRow& row, TopColumn column) {
  switch (column) {
    case TopColumn::Cpu:
      return static_cast<std::uint64_t>(row.cpu.count());
    case TopColumn::Turns:
      return row.turns;
    case TopColumn::Calls:
      return row.requests;
    case TopColumn::Written:
      return row.written_bytes;
    case TopColumn::Memory:
      return row.memory_bytes;
    case TopColumn::Disk:
      return row.disk_bytes;
    case TopColumn::Restarts:
      return row.restarts;
    case TopColumn::Name:
      break;
  }
  return 0;
}

// "0", "900", "64.0K", "1.5M".
std::string in_bytes(std::uint64_t bytes) {
  constexpr std::array<char, 5> kUnits = {'K', 'M', 'G', 'T', 'P'};
  if (bytes < 1024) return std::to_string(bytes);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  value /= 1024;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f}{}", value, kUnits.at(unit));
}

// Percent of one processor.
std::string in_percent(Duration cpu, Duration window) {
  using Seconds = std::chrono::duration<double>;
  return fmt::format("{:.1f}%",
                     100 * Seconds(cpu).count() / std::max(Seconds(window).count(), 1e-3));
}

// The cells of a row, one for each column; the first four are texts.
constexpr std::size_t kTexts = 4;
using Cells = std::vector<std::string>;

Cells heads() {
  return {"KIND",  "NAMESPACE", "NAME",   "STATE", "CPU",     "TURNS",
          "CALLS", "WRITTEN",   "MEMORY", "DISK",  "RESTARTS"};
}

Cells cells_of(const TopRow& row, Duration window) {
  return {std::string(recorder::name_of(row.key.contract)),
          printable(row.key.namespace_),
          printable(shown_name(row.key.contract, row.key.name)),
          row.phase.empty() ? "-" : printable(row.phase),
          in_percent(row.cpu, window),
          std::to_string(row.turns),
          std::to_string(row.requests),
          in_bytes(row.written_bytes),
          in_bytes(row.memory_bytes),
          in_bytes(row.disk_bytes),
          std::to_string(row.restarts)};
}

// Names may have 253 letters.
std::vector<std::string> table_of(const std::vector<Cells>& rows) {
  constexpr std::size_t kWidthMax = 40;
  return plain_table(rows, {.texts = kTexts, .width_max = kWidthMax});
}

std::string summary(const FoundTop& found) {
  Duration cpu{};
  std::uint64_t memory = 0;
  for (const TopRow& row : found.rows) {
    cpu += row.cpu;
    memory += row.memory_bytes;
  }
  return fmt::format(
      "{}: {} guests, cpu {} of one processor, memory {}; counts of the last {}",
      to_rfc3339(found.at), found.rows.size(), in_percent(cpu, found.window), in_bytes(memory),
      to_go_duration(std::chrono::duration_cast<std::chrono::seconds>(found.window)));
}

std::string problems_of(const FoundTop& found) {
  std::string text;
  for (const recorder::Shortened& one : found.read.shortened)
    text += in_words(one) + "\n";
  for (const std::string& problem : found.read.problems)
    text += printable(problem) + "\n";
  return text;
}

}  // namespace

std::optional<TopColumn> top_column(std::string_view word) {
  const auto* const found = std::ranges::find(kColumnNames, word);
  if (found == kColumnNames.end()) return std::nullopt;
  return static_cast<TopColumn>(found - kColumnNames.begin());
}

std::vector<std::string> top_column_names() {
  return {kColumnNames.begin(), kColumnNames.end()};
}

void sort_rows(std::vector<TopRow>& rows, TopColumn by) {
  std::ranges::sort(rows, [by](const TopRow& left, const TopRow& right) {
    const std::uint64_t of_left = value_of(left, by);
    const std::uint64_t of_right = value_of(right, by);
    return std::tie(of_right, left.key) < std::tie(of_left, right.key);
  });
}

std::string top_text(FoundTop found, TopColumn by) {
  sort_rows(found.rows, by);
  std::vector<Cells> rows = {heads()};
  for (const TopRow& row : found.rows)
    rows.push_back(cells_of(row, found.window));
  std::string text;
  for (const std::string& line : table_of(rows))
    text += line + "\n";
  return text + problems_of(found);
}

std::string top_json(const FoundTop& found) {
  return json::dump(seeing::json_of(found)) + "\n";
}

std::optional<Key> take_key(std::string& input, bool is_all) {
  using Kind = Key::Kind;
  constexpr char kEscape = '\x1b';
  while (!input.empty()) {
    const char first = input.front();
    if (first == kEscape) {
      if (input.size() == 1) {
        if (!is_all) return std::nullopt;
        input.clear();
        return Key{.kind = Kind::Escape};
      }
      if (input[1] != '[' && input[1] != 'O') {
        input.erase(0, 1);
        return Key{.kind = Kind::Escape};
      }
      // A sequence has parameters, then the character that ends it.
      std::size_t end = 2;
      while (end < input.size() && (input[end] < '@' || input[end] > '~'))
        ++end;
      if (end == input.size()) {
        constexpr std::size_t kLongest = 16;
        if (!is_all && input.size() < kLongest) return std::nullopt;
        input.clear();
        return std::nullopt;
      }
      const std::string sequence = input.substr(2, end - 1);
      input.erase(0, end + 1);
      constexpr std::array<std::pair<std::string_view, Kind>, 10> kSequences = {{
          {"A", Kind::Up},
          {"B", Kind::Down},
          {"5~", Kind::PageUp},
          {"6~", Kind::PageDown},
          {"H", Kind::Home},
          {"1~", Kind::Home},
          {"7~", Kind::Home},
          {"F", Kind::End},
          {"4~", Kind::End},
          {"8~", Kind::End},
      }};
      for (const auto& [known, kind] : kSequences)
        if (sequence == known) return Key{.kind = kind};
      continue;
    }
    input.erase(0, 1);
    if (first == '\r' || first == '\n') return Key{.kind = Kind::Enter};
    if (first == '\x7f' || first == '\b') return Key{.kind = Kind::Backspace};
    if (first >= ' ' && first <= '~') return Key{.kind = Kind::Letter, .letter = first};
  }
  return std::nullopt;
}

void TopScreen::update(FoundTop found) {
  found_ = std::move(found);
  problem_.clear();
  arrange();
}

void TopScreen::arrange() {
  std::optional<seeing::GuestKey> selected;
  if (selected_ < shown_.size()) selected = shown_[selected_].key;
  shown_.clear();
  for (const TopRow& row : found_.rows) {
    const Cells cells = cells_of(row, found_.window);
    const bool is_meant = std::ranges::any_of(
        cells.begin(), cells.begin() + kTexts,
        [this](const std::string& cell) { return to_lower(cell).contains(to_lower(filter_)); });
    if (is_meant) shown_.push_back(row);
  }
  sort_rows(shown_, by_);
  if (selected) {
    const auto again = std::ranges::find(shown_, *selected, &TopRow::key);
    if (again != shown_.end()) selected_ = static_cast<std::size_t>(again - shown_.begin());
  }
  move(0);
}

void TopScreen::show_text(std::string_view title, std::string_view text) {
  Text shown{.title = printable(title)};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    shown.lines.push_back(printable(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  // Starts at the end, because the last turns matter most.
  shown.first = first_max(shown.lines.size());
  text_ = std::move(shown);
}

void TopScreen::resize(Size size) {
  size_ = size;
  move(0);
}

// The number of rows, or lines of a text, that fit between the lines around them.
std::size_t TopScreen::room() const {
  constexpr std::size_t kAround = 3;
  return size_.lines > kAround ? size_.lines - kAround : 1;
}

// The first of `count` lines that is shown when the last one is.
std::size_t TopScreen::first_max(std::size_t count) const {
  return count > room() ? count - room() : 0;
}

void TopScreen::move(std::ptrdiff_t by) {
  const auto last = static_cast<std::ptrdiff_t>(shown_.size()) - 1;
  const auto wanted = static_cast<std::ptrdiff_t>(selected_) + by;
  selected_ = static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(wanted, 0, std::max<std::ptrdiff_t>(last, 0)));
  first_ = std::min({first_, selected_, first_max(shown_.size())});
  if (selected_ >= first_ + room()) first_ = selected_ - room() + 1;
}

TopScreen::Wish TopScreen::on_key(const Key& key) {
  if (text_) {
    on_key_in_text(key);
    return {};
  }
  if (is_filtering_) {
    on_key_in_filter(key);
    return {};
  }
  return on_key_in_table(key);
}

TopScreen::Wish TopScreen::on_key_in_table(const Key& key) {
  const auto page = static_cast<std::ptrdiff_t>(room());
  const auto all = static_cast<std::ptrdiff_t>(shown_.size());
  switch (key.kind) {
    case Key::Kind::Up:
      move(-1);
      return {};
    case Key::Kind::Down:
      move(1);
      return {};
    case Key::Kind::PageUp:
      move(-page);
      return {};
    case Key::Kind::PageDown:
      move(page);
      return {};
    case Key::Kind::Home:
      move(-all);
      return {};
    case Key::Kind::End:
      move(all);
      return {};
    case Key::Kind::Enter:
      if (selected_ >= shown_.size()) return {};
      return Open{.guest = shown_[selected_].key};
    case Key::Kind::Escape:
      filter_.clear();
      arrange();
      return {};
    case Key::Kind::Backspace:
      return {};
    case Key::Kind::Letter:
      break;
  }
  if (key.letter == 'q') return Quit{};
  if (key.letter == '/') is_filtering_ = true;
  if (key.letter == 'k') move(-1);
  if (key.letter == 'j') move(1);
  if (key.letter == 's') {
    by_ = static_cast<TopColumn>((static_cast<std::size_t>(by_) + 1) % kColumnNames.size());
    arrange();
  }
  return {};
}

void TopScreen::on_key_in_filter(const Key& key) {
  constexpr std::size_t kFilterMax = 64;
  if (key.kind == Key::Kind::Escape) filter_.clear();
  if (key.kind == Key::Kind::Escape || key.kind == Key::Kind::Enter) is_filtering_ = false;
  if (key.kind == Key::Kind::Backspace && !filter_.empty()) filter_.pop_back();
  if (key.kind == Key::Kind::Letter && filter_.size() < kFilterMax) filter_ += key.letter;
  arrange();
}

void TopScreen::on_key_in_text(const Key& key) {
  const std::size_t last = first_max(text_->lines.size());
  std::size_t& first = text_->first;
  switch (key.kind) {
    case Key::Kind::Up:
      first = first > 0 ? first - 1 : 0;
      return;
    case Key::Kind::Down:
      first = std::min(first + 1, last);
      return;
    case Key::Kind::PageUp:
      first = first > room() ? first - room() : 0;
      return;
    case Key::Kind::PageDown:
      first = std::min(first + room(), last);
      return;
    case Key::Kind::Home:
      first = 0;
      return;
    case Key::Kind::End:
      first = last;
      return;
    default:
      break;
  }
  if (key.kind == Key::Kind::Escape || key.letter == 'q') text_.reset();
}

std::vector<TopScreen::Line> TopScreen::lines() const {
  std::vector<Line> lines;
  if (text_) {
    lines.push_back({.text = text_->title});
    lines.push_back({});
    const std::size_t end = std::min(text_->first + room(), text_->lines.size());
    for (std::size_t at = text_->first; at < end; ++at)
      lines.push_back({.text = text_->lines[at]});
    lines.resize(std::max<std::size_t>(size_.lines, 1) - 1);
    lines.push_back({.text = "arrows: move   esc: back"});
  } else {
    lines = table_lines();
  }
  lines.resize(std::max<std::size_t>(size_.lines, 1));
  for (Line& line : lines)
    if (line.text.size() > size_.columns) line.text.resize(size_.columns);
  return lines;
}

std::vector<TopScreen::Line> TopScreen::table_lines() const {
  std::vector<Line> lines;
  lines.push_back({.text = problem_.empty() ? summary(found_) : printable(problem_)});
  std::vector<Cells> rows = {heads()};
  const std::size_t end = std::min(first_ + room(), shown_.size());
  for (std::size_t at = first_; at < end; ++at)
    rows.push_back(cells_of(shown_[at], found_.window));
  const std::vector<std::string> table = table_of(rows);
  for (std::size_t at = 0; at < table.size(); ++at)
    lines.push_back({.text = table[at], .is_marked = at > 0 && first_ + at - 1 == selected_});
  lines.resize(std::max<std::size_t>(size_.lines, 1) - 1);
  const std::string_view by = kColumnNames.at(static_cast<std::size_t>(by_));
  lines.push_back({.text = is_filtering_
                               ? "/" + filter_
                               : fmt::format("arrows: move   s: sort ({})   /: filter{}   "
                                             "enter: turns   q: quit",
                                             by, filter_.empty() ? "" : " (" + filter_ + ")")});
  return lines;
}

}  // namespace hangar::commands
