// Lists of texts in documents.
#pragma once

#include "json/value.h"

#include <set>
#include <string>

namespace hangar::json {

template <class Texts>
[[nodiscard]] Array array_of(const Texts& texts) {
  Array array;
  for (const auto& text : texts)
    array.emplace_back(String(text));
  return array;
}

// The texts of the array at `path`; none when there is no array.
[[nodiscard]] std::set<std::string> texts_at(const Value& value, Path path);

}  // namespace hangar::json
