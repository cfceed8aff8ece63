#include "json/texts.h"

#include "json/value.h"

#include <set>
#include <string>

namespace hangar::json {

std::set<std::string> texts_at(const Value& value, Path path) {
  std::set<std::string> texts;
  if (const Array* const array = array_at(value, path)) {
    for (const Value& text : *array)
      if (text.is_string()) texts.emplace(text.get_string());
  }
  return texts;
}

}  // namespace hangar::json
