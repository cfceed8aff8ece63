// The part of kubectl's JSONPath that selects members: {.status.phase}, {.items[0].name},
// {.status.conditions[?(@.type=="Ready")].status}, {.spec.ports[*].port}. Braces may be omitted.
#pragma once

#include "base/result.h"
#include "json/value.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::workflows {

class JsonPath {
 public:
  // InvalidInput names the place that cannot be parsed.
  [[nodiscard]] static Result<JsonPath> parse(std::string_view text);

  // The values that match, in document order; views into `document`.
  [[nodiscard]] std::vector<const json::Value*> find(const json::Value& document) const;

 private:
  struct Member {
    std::string name;
  };
  struct Index {
    std::size_t index = 0;
  };
  struct All {};
  struct Filter {  // Elements whose member has that text.
    std::string member;
    std::string value;
  };
  using Step = std::variant<Member, Index, All, Filter>;

  static void follow(const Step& step, const json::Value& value,
                     std::vector<const json::Value*>& found);

  std::vector<Step> steps_;
};

// A scalar as people compare it: a string without quotes, anything else as JSON.
[[nodiscard]] std::string text_of(const json::Value& value);

}  // namespace hangar::workflows
