// The messages of many errors as one: users should see all that they have to fix. Of a release with
// thousands of resources, each refused with some KiB, it keeps about what a condition can show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::airways {

class Refusals {
 public:
  void add(std::string_view message);

  [[nodiscard]] bool is_empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t count() const { return count_; }
  // "one; another; and 3 others".
  [[nodiscard]] std::string to_string() const;

 private:
  std::string text_;
  std::size_t count_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace hangar::airways
