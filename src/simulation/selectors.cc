#include "simulation/selectors.h"

#include "json/value.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::simulation {

namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

// At commas outside of parentheses.
std::vector<std::string_view> terms(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (const auto term = trimmed(text.substr(begin, i - begin)); !term.empty()) {
      out.push_back(term);
    }
    begin = i + 1;
  }
  return out;
}

std::optional<std::string_view> label(const json::Value& object, std::string_view key) {
  const json::Value* const value = json::find(object, {"metadata", "labels", key});
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string_view(value->as_string());
}

bool is_in(std::string_view list, std::string_view value) {
  list = list.substr(list.find('(') + 1);
  list = list.substr(0, list.find(')'));
  return std::ranges::any_of(terms(list), [value](std::string_view one) { return one == value; });
}

bool label_matches(std::string_view term, const json::Value& object) {
  if (const std::size_t at = term.find(" notin "); at != std::string_view::npos) {
    const auto value = label(object, trimmed(term.substr(0, at)));
    return !value || !is_in(term.substr(at), *value);
  }
  if (const std::size_t at = term.find(" in "); at != std::string_view::npos) {
    const auto value = label(object, trimmed(term.substr(0, at)));
    return value && is_in(term.substr(at), *value);
  }
  if (const std::size_t at = term.find("!="); at != std::string_view::npos) {
    return label(object, trimmed(term.substr(0, at))) != trimmed(term.substr(at + 2));
  }
  if (const std::size_t at = term.find('='); at != std::string_view::npos) {
    std::string_view value = term.substr(at + 1);
    if (value.starts_with('=')) value.remove_prefix(1);
    return label(object, trimmed(term.substr(0, at))) == trimmed(value);
  }
  if (term.starts_with('!')) return !label(object, trimmed(term.substr(1)));
  return label(object, term).has_value();
}

bool field_matches(std::string_view term, const json::Value& object) {
  const bool is_negative = term.contains("!=");
  const std::size_t at = term.find(is_negative ? "!=" : "=");
  if (at == std::string_view::npos) return false;
  std::string_view path = term.substr(0, at);
  std::string_view wanted = term.substr(at + (is_negative ? 2 : 1));
  if (wanted.starts_with('=')) wanted.remove_prefix(1);
  const json::Value* value = &object;
  while (value != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    value = value->is_object() ? value->as_object().if_contains(path.substr(0, dot)) : nullptr;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  const std::string_view has =
      value != nullptr && value->is_string() ? std::string_view(value->as_string()) : "";
  return (has == wanted) != is_negative;
}

}  // namespace

bool labels_match(std::string_view selector, const json::Value& object) {
  return std::ranges::all_of(
      terms(selector), [&object](std::string_view term) { return label_matches(term, object); });
}

bool fields_match(std::string_view selector, const json::Value& object) {
  return std::ranges::all_of(
      terms(selector), [&object](std::string_view term) { return field_matches(term, object); });
}

}  // namespace hangar::simulation
