#include "json/diff.h"

#include "json/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::json {

namespace {

using Lines = std::vector<std::string_view>;

// Each line with its line end, so that a last line without one differs from one that has it.
Lines split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

enum class Op : std::uint8_t { Keep, Remove, Add };

void append_ops(std::vector<Op>& ops, Op op, std::size_t count) {
  ops.insert(ops.end(), count, op);
}

// Myers, "An O(ND) difference algorithm and its variations" (1986), with the whole trace kept:
// furthest[d][k] is how far into `left` d changes reach on the diagonal k (left index minus right).
class Myers {
 public:
  Myers(std::span<const std::string_view> left, std::span<const std::string_view> right)
      : left_(left), right_(right) {}

  // Finds the edits from beginning to end; false when more than `changes_max` changes are needed.
  bool run(std::size_t changes_max, std::vector<Op>& ops) {
    for (std::int64_t changes = 0; changes <= static_cast<std::int64_t>(changes_max); ++changes) {
      trace_.emplace_back(static_cast<std::size_t>(2 * changes) + 1);
      for (std::int64_t diagonal = -changes; diagonal <= changes; diagonal += 2) {
        const std::int64_t reached = slide(first_on(changes, diagonal), diagonal);
        at(changes, diagonal) = static_cast<std::int32_t>(reached);
        if (reached >= left_size() && reached - diagonal >= right_size()) {
          walk_back(changes, diagonal, ops);
          return true;
        }
      }
    }
    return false;
  }

 private:
  [[nodiscard]] std::int64_t left_size() const { return std::ssize(left_); }
  [[nodiscard]] std::int64_t right_size() const { return std::ssize(right_); }

  std::int32_t& at(std::int64_t changes, std::int64_t diagonal) {
    return trace_[static_cast<std::size_t>(changes)][static_cast<std::size_t>(diagonal + changes)];
  }

  // True when the best path to `diagonal` adds a line (comes from the diagonal above).
  bool adds(std::int64_t changes, std::int64_t diagonal) {
    if (diagonal == -changes) return true;
    if (diagonal == changes) return false;
    return at(changes - 1, diagonal - 1) < at(changes - 1, diagonal + 1);
  }
  std::int64_t first_on(std::int64_t changes, std::int64_t diagonal) {
    if (changes == 0) return 0;
    return adds(changes, diagonal) ? at(changes - 1, diagonal + 1)
                                   : at(changes - 1, diagonal - 1) + 1;
  }

  [[nodiscard]] std::int64_t slide(std::int64_t from, std::int64_t diagonal) const {
    while (from < left_size() && from - diagonal < right_size() && from - diagonal >= 0 &&
           left_[static_cast<std::size_t>(from)] ==
               right_[static_cast<std::size_t>(from - diagonal)]) {
      ++from;
    }
    return from;
  }

  void walk_back(std::int64_t changes, std::int64_t diagonal, std::vector<Op>& ops) {
    std::vector<Op> backward;
    std::int64_t reached = left_size();
    for (; changes > 0; --changes) {
      const bool add = adds(changes, diagonal);
      append_ops(backward, Op::Keep,
                 static_cast<std::size_t>(reached - first_on(changes, diagonal)));
      backward.push_back(add ? Op::Add : Op::Remove);
      diagonal += add ? 1 : -1;
      reached = at(changes - 1, diagonal);
    }
    append_ops(backward, Op::Keep, static_cast<std::size_t>(reached));
    ops.insert(ops.end(), backward.rbegin(), backward.rend());
  }

  std::span<const std::string_view> left_;
  std::span<const std::string_view> right_;
  std::vector<std::vector<std::int32_t>> trace_;
};

std::vector<Op> compare(const Lines& left, const Lines& right) {
  const auto ends = std::ranges::mismatch(left, right);
  const auto prefix = static_cast<std::size_t>(ends.in1 - left.begin());
  std::size_t suffix = 0;
  while (suffix < std::min(left.size(), right.size()) - prefix &&
         left[left.size() - 1 - suffix] == right[right.size() - 1 - suffix]) {
    ++suffix;
  }
  const std::size_t removed = left.size() - prefix - suffix;
  const std::size_t added = right.size() - prefix - suffix;
  std::vector<Op> ops(prefix, Op::Keep);
  Myers myers(std::span(left).subspan(prefix, removed), std::span(right).subspan(prefix, added));
  if (!myers.run(limits::kDiffLinesMax, ops)) {
    append_ops(ops, Op::Remove, removed);
    append_ops(ops, Op::Add, added);
  }
  append_ops(ops, Op::Keep, suffix);
  return ops;
}

// The range of a hunk, "12,3". Where it is empty, diff(1) gives the line before.
std::string range(std::size_t begin, std::size_t count) {
  if (count == 1) return std::to_string(begin + 1);
  return fmt::format("{},{}", count == 0 ? begin : begin + 1, count);
}

void append_line(std::string& out, char mark, std::string_view line) {
  out += mark;
  out += line;
  if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

}  // namespace

std::string diff_lines(std::string_view left, std::string_view right, const DiffOptions& options) {
  if (left == right) return {};
  const Lines left_lines = split(left);
  const Lines right_lines = split(right);
  const std::vector<Op> ops = compare(left_lines, right_lines);
  std::string out = fmt::format("--- {}\n+++ {}\n", options.left_name, options.right_name);

  const std::size_t context = options.context_lines;
  std::size_t at = 0;
  std::size_t left_at = 0;
  std::size_t right_at = 0;
  const auto next_change = [&ops](std::size_t from) {
    return static_cast<std::size_t>(std::find_if(ops.begin() + static_cast<std::ptrdiff_t>(from),
                                                 ops.end(), [](Op op) { return op != Op::Keep; }) -
                                    ops.begin());
  };
  for (std::size_t change = next_change(0); change < ops.size(); change = next_change(at)) {
    const std::size_t skipped = change - at - std::min(context, change - at);
    at += skipped;
    left_at += skipped;
    right_at += skipped;
    const std::size_t left_begin = left_at;
    const std::size_t right_begin = right_at;

    // The hunk ends where more unchanged lines follow than two contexts need.
    std::size_t end = change;
    for (std::size_t next = change; next < ops.size() && next - end <= 2 * context;
         next = next_change(end)) {
      end = next + 1;
    }
    end += std::min(context, ops.size() - end);

    std::string body;
    for (; at < end; ++at) {
      switch (ops[at]) {
        case Op::Keep:
          append_line(body, ' ', left_lines[left_at++]);
          ++right_at;
          break;
        case Op::Remove:
          append_line(body, '-', left_lines[left_at++]);
          break;
        case Op::Add:
          append_line(body, '+', right_lines[right_at++]);
          break;
      }
    }
    out += fmt::format("@@ -{} +{} @@\n", range(left_begin, left_at - left_begin),
                       range(right_begin, right_at - right_begin));
    out += body;
  }
  return out;
}

}  // namespace hangar::json
