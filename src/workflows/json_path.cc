#include "workflows/json_path.h"

#include "base/number.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace hangar::workflows {

namespace {

std::unexpected<Error> wrong(std::string_view text, std::string_view rest) {
  return fail(
      ErrorKind::InvalidInput,
      fmt::format(
          "\"{}\" is not a JSONPath such as {{.status.phase}}: it cannot be read from \"{}\"", text,
          rest));
}

// The text up to `end`, which is consumed too; none when `end` does not occur.
std::optional<std::string_view> take_until(std::string_view& rest, std::string_view end) {
  const std::size_t at = rest.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at + end.size());
  return taken;
}

}  // namespace

Result<JsonPath> JsonPath::parse(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with('{') && rest.ends_with('}')) rest = rest.substr(1, rest.size() - 2);
  if (rest.starts_with('$')) rest.remove_prefix(1);
  JsonPath path;
  while (!rest.empty()) {
    const std::string_view before = rest;
    if (rest.starts_with("[?(@.")) {
      rest.remove_prefix(5);
      const auto member = take_until(rest, "==");
      const char quote = rest.empty() ? '\0' : rest.front();
      if (!member || member->empty() || (quote != '"' && quote != '\'')) return wrong(text, before);
      rest.remove_prefix(1);
      const auto value = take_until(rest, std::string(1, quote) + ")]");
      if (!value) return wrong(text, before);
      path.steps_.emplace_back(
          Filter{.member = std::string(*member), .value = std::string(*value)});
    } else if (rest.starts_with("[*]")) {
      rest.remove_prefix(3);
      path.steps_.emplace_back(All{});
    } else if (rest.starts_with("['")) {
      rest.remove_prefix(2);
      const auto name = take_until(rest, "']");
      if (!name) return wrong(text, before);
      path.steps_.emplace_back(Member{std::string(*name)});
    } else if (rest.starts_with('[')) {
      rest.remove_prefix(1);
      const auto digits = take_until(rest, "]");
      const auto index = digits ? parse_number<std::size_t>(*digits) : std::nullopt;
      if (!index) return wrong(text, before);
      path.steps_.emplace_back(Index{*index});
    } else if (rest.starts_with('.')) {
      rest.remove_prefix(1);
      std::string name;
      // A dot within a name is escaped.
      while (!rest.empty() && rest.front() != '.' && rest.front() != '[') {
        if (rest.starts_with("\\.")) rest.remove_prefix(1);
        name += rest.front();
        rest.remove_prefix(1);
      }
      if (name.empty()) return wrong(text, before);
      path.steps_.emplace_back(Member{std::move(name)});
    } else {
      return wrong(text, before);
    }
  }
  if (path.steps_.empty()) return wrong(text, text);
  return path;
}

void JsonPath::follow(const Step& step, const json::Value& value,
                      std::vector<const json::Value*>& found) {
  if (const auto* const member = std::get_if<Member>(&step)) {
    const json::Value* const inner = json::find(value, {member->name});
    if (inner != nullptr) found.push_back(inner);
    return;
  }
  if (!value.is_array()) return;
  const json::Array& elements = value.get_array();
  if (const auto* const index = std::get_if<Index>(&step)) {
    if (index->index < elements.size()) found.push_back(&elements[index->index]);
    return;
  }
  const auto* const filter = std::get_if<Filter>(&step);
  for (const json::Value& element : elements) {
    const json::Value* const member =
        filter == nullptr ? nullptr : json::find(element, {filter->member});
    if (filter == nullptr || (member != nullptr && text_of(*member) == filter->value)) {
      found.push_back(&element);
    }
  }
}

std::vector<const json::Value*> JsonPath::find(const json::Value& document) const {
  std::vector<const json::Value*> values{&document};
  for (const Step& step : steps_) {
    std::vector<const json::Value*> next;
    for (const json::Value* const value : values)
      follow(step, *value, next);
    values = std::move(next);
  }
  return values;
}

std::string text_of(const json::Value& value) {
  return value.is_string() ? std::string(value.get_string()) : json::dump(value);
}

}  // namespace hangar::workflows
