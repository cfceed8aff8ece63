#include "node_install/toml.h"

#include "base/result.h"
#include "base/utf8.h"
#include "node_install/limits.h"
#include "node_install/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {
// An assumption of the TOML library does not hold.
struct BrokenAssumption {};
}  // namespace

// Version 3.3 has assertions that malformed input violates ("[." is enough). They would abort the
// program, and in a release build the compiler could even rely on them. Here they abort
// the parsing.
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? void() : throw BrokenAssumption())
// Without exceptions it continues to parse after some errors.
#define TOML_EXCEPTIONS 1
#define TOML_HEADER_ONLY 1
// The enums of its character tables do not cover every character either: for "\u00e9" at the start
// of a value they claim that this cannot happen. All of these functions return a bool.
#include <toml++/impl/forward_declarations.h>
#pragma push_macro("TOML_UNREACHABLE")
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#include <toml++/impl/unicode.h>
#pragma pop_macro("TOML_UNREACHABLE")
#include <toml++/toml.h>

namespace hangar::node_install {

namespace {

constexpr std::string_view kInteger = "integer ";
constexpr std::string_view kText = "text ";
constexpr std::string_view kBoolean = "boolean ";

std::string describe(const toml::node& node) {
  if (const auto* text = node.as_string()) return std::string(kText) + text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}{}", kInteger, number->get());
  if (const auto* flag = node.as_boolean()) return fmt::format("{}{}", kBoolean, flag->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("float {:a}", real->get());
  std::ostringstream out;
  node.visit([&out](const auto& value) {
    if constexpr (toml::is_value<decltype(value)>) out << "time " << value.get();
  });
  return out.str();
}

class Flattener {
 public:
  Flattener(Toml::Leaves& leaves, std::set<TomlPath>& empty) : leaves_(leaves), empty_(empty) {}

  // No recursion: the parser bounds the depth of nested values (TOML_MAX_NESTED_VALUES), but only
  // the size of the text bounds the depth of dotted keys.
  bool flatten(const toml::table& root) {
    std::vector<std::pair<TomlPath, const toml::node*>> pending;
    pending.emplace_back(TomlPath{}, &root);
    while (!pending.empty()) {
      auto [path, node] = std::move(pending.back());
      pending.pop_back();
      for (const std::string& step : path)
        bytes_ += step.size() + sizeof(std::string);
      if (bytes_ > limits::kLeafBytesMax) return false;
      if (const toml::table* table = node->as_table()) {
        if (table->empty()) empty_.insert(path);
        for (const auto& [key, value] : *table)
          pending.emplace_back(below(path, std::string(key.str())), &value);
      } else if (const toml::array* array = node->as_array()) {
        if (array->empty()) empty_.insert(path);
        for (std::size_t i = 0; i < array->size(); ++i)
          pending.emplace_back(below(path, fmt::format("{}", i)), array->get(i));
      } else {
        std::string text = describe(*node);
        bytes_ += text.size();
        leaves_.emplace(std::move(path), std::move(text));
      }
    }
    return true;
  }

 private:
  TomlPath below(const TomlPath& path, std::string name) {
    for (const std::string& step : path)
      bytes_ += step.size() + sizeof(std::string);
    if (bytes_ > limits::kLeafBytesMax) return {};
    TomlPath longer = path;
    longer.push_back(std::move(name));
    return longer;
  }

  Toml::Leaves& leaves_;
  std::set<TomlPath>& empty_;
  std::uint64_t bytes_ = 0;
};

bool starts_with(const TomlPath& path, const TomlPath& prefix) {
  return path.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

}  // namespace

Result<Toml> Toml::parse(std::string_view text) {
  if (text.size() > limits::kConfigBytesMax) {
    return refuse(ErrorKind::LimitExceeded, reason::kConfigInvalid,
                  fmt::format("larger than {} bytes", limits::kConfigBytesMax));
  }
  if (const std::size_t valid = valid_utf8_prefix(text); valid != text.size()) {
    const auto line = std::ranges::count(text.substr(0, valid), '\n') + 1;
    return refuse(ErrorKind::InvalidInput, reason::kConfigInvalid,
                  fmt::format("line {} is not UTF-8", line));
  }
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return refuse(ErrorKind::InvalidInput, reason::kConfigInvalid,
                  fmt::format("line {}, column {}: {}", error.source().begin.line,
                              error.source().begin.column, error.description()));
  } catch (const BrokenAssumption&) {
    return refuse(ErrorKind::InvalidInput, reason::kConfigInvalid,
                  "it is not TOML: look for a table or key with a broken name");
  }
  Toml document;
  if (!Flattener(document.leaves_, document.empty_).flatten(root)) {
    return refuse(ErrorKind::LimitExceeded, reason::kConfigInvalid,
                  "its names are too long for so many values");
  }
  return document;
}

std::optional<std::int64_t> Toml::integer(const TomlPath& path) const {
  const auto found = leaves_.find(path);
  if (found == leaves_.end() || !found->second.starts_with(kInteger)) return std::nullopt;
  std::int64_t number = 0;
  std::istringstream(found->second.substr(kInteger.size())) >> number;
  return number;
}

std::optional<std::string> Toml::text(const TomlPath& path) const {
  const auto found = leaves_.find(path);
  if (found == leaves_.end() || !found->second.starts_with(kText)) return std::nullopt;
  return found->second.substr(kText.size());
}

std::optional<bool> Toml::boolean(const TomlPath& path) const {
  const auto found = leaves_.find(path);
  if (found == leaves_.end() || !found->second.starts_with(kBoolean)) return std::nullopt;
  return found->second.substr(kBoolean.size()) == "true";
}

std::vector<std::string> Toml::texts(const TomlPath& path) const {
  std::vector<std::string> found;
  TomlPath element = path;
  element.emplace_back();
  for (std::size_t i = 0, count = names_below(path).size(); i < count; ++i) {
    element.back() = fmt::format("{}", i);
    if (auto value = text(element)) found.push_back(*std::move(value));
  }
  return found;
}

std::set<std::string> Toml::names_below(const TomlPath& path) const {
  std::set<std::string> names;
  for (auto at = leaves_.lower_bound(path); at != leaves_.end() && starts_with(at->first, path);
       ++at)
    if (at->first.size() > path.size()) names.insert(at->first[path.size()]);
  for (auto at = empty_.lower_bound(path); at != empty_.end() && starts_with(*at, path); ++at)
    if (at->size() > path.size()) names.insert((*at)[path.size()]);
  return names;
}

}  // namespace hangar::node_install
