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

// Reads only metadata.labels, in one pass, whatever else the object contains; a lookup is a binary
// search. Views are into the object, which must live as long as this, or until the next read().
class Labels {
 public:
  Labels() = default;
  explicit Labels(const Object& object) { read(object); }
  Labels(const Labels&) = delete;
  Labels& operator=(const Labels&) = delete;

  // Reads the labels of another object, reusing the memory.
  void read(const Object& object);

  // A label whose value is not a string counts as missing.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const;

 private:
  struct Label {
    std::string_view key;
    std::string_view value;
    std::size_t position = 0;  // The index in the document.
  };

  std::vector<Label> labels_;
  std::forward_list<std::string> unescaped_;  // The labels above that are written with escapes.
};

}  // namespace hangar::kube
