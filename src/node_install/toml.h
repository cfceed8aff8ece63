// A TOML document as a flat list of its values; wraps the TOML library. Edits are made on the text,
// so that comments and layout of others stay; this list is used to plan an edit and to check
// it afterwards.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {

using TomlPath = std::vector<std::string>;

class Toml {
 public:
  // InvalidInput (ConfigInvalid) with line and column; LimitExceeded for documents beyond limits.h.
  [[nodiscard]] static Result<Toml> parse(std::string_view text);

  // Every value that is not a table, by its path; elements of arrays by their index ("0"). The text
  // is its type and value, and equal exactly for equal values. Tables without values are not in it.
  using Leaves = std::map<TomlPath, std::string>;
  [[nodiscard]] const Leaves& leaves() const { return leaves_; }

  // The value at `path`, if it is of that type.
  [[nodiscard]] std::optional<std::int64_t> integer(const TomlPath& path) const;
  [[nodiscard]] std::optional<std::string> text(const TomlPath& path) const;
  [[nodiscard]] std::optional<bool> boolean(const TomlPath& path) const;
  // The strings of the array at `path`, in their order; other elements are left out.
  [[nodiscard]] std::vector<std::string> texts(const TomlPath& path) const;
  // The names of the entries below `path`, including tables without values.
  [[nodiscard]] std::set<std::string> names_below(const TomlPath& path) const;
  [[nodiscard]] bool has(const TomlPath& path) const { return !names_below(path).empty(); }

 private:
  Leaves leaves_;
  std::set<TomlPath> empty_;  // Tables and arrays without values.
};

}  // namespace hangar::node_install
