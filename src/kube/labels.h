// The labels of an object, looked up without building a document.
#pragma once

#include "kube/object.h"

#include <cstddef>
#include <forward_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube {

// One pass over metadata.labels alone, whatever else the object holds; a look-up is a binary
// search. Views are into the object, which outlives this or the next read().
class Labels {
 public:
  Labels() = default;
  explicit Labels(const Object& object) { read(object); }
  Labels(const Labels&) = delete;
  Labels& operator=(const Labels&) = delete;

  // Of another object, in the same memory.
  void read(const Object& object);

  // A value that is not a string is none.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const;

 private:
  struct Label {
    std::string_view key;
    std::string_view value;
    std::size_t position = 0;  // Among all, as they stand.
  };

  std::vector<Label> labels_;
  std::forward_list<std::string> unescaped_;  // Of the above, what is written with escapes.
};

}  // namespace hangar::kube
