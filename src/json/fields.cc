#include "json/fields.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace hangar::json {

Result<> Fields::check_only(std::initializer_list<std::string_view> keys) const {
  for (const auto& member : *object_) {
    const std::string_view key = member.key();
    if (std::ranges::find(keys, key) != keys.end()) continue;
    return fail(ErrorKind::InvalidInput, name(key) + ": unknown field");
  }
  return {};
}

std::string Fields::name(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

Result<std::string> Fields::text(std::string_view key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::string();
  if (!value->is_string()) return wrong(key, "a string");
  return std::string(value->get_string());
}

Result<std::string> Fields::required_text(std::string_view key) const {
  std::string value = HANGAR_TRY(text(key));
  if (value.empty()) return fail(ErrorKind::InvalidInput, name(key) + ": is required");
  return value;
}

Result<bool> Fields::flag(std::string_view key) const {
  const Value* const value = find(key);
  if (value == nullptr) return false;
  if (!value->is_bool()) return wrong(key, "true or false");
  return value->get_bool();
}

Result<std::int64_t> Fields::integer(std::string_view key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::int64_t{0};
  if (const std::int64_t* number = value->if_int64()) return *number;
  if (const std::uint64_t* number = value->if_uint64()) {
    if (*number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return wrong(key, "a smaller integer");
    }
    return static_cast<std::int64_t>(*number);
  }
  return wrong(key, "an integer");
}

Result<Duration> Fields::duration(std::string_view key) const {
  const std::string value = HANGAR_TRY(text(key));
  if (value.empty()) return Duration(0);
  Result<Duration> parsed = parse_go_duration(value);
  if (!parsed) return std::unexpected(std::move(parsed).error().in(name(key)));
  return *parsed;
}

Result<std::vector<std::string>> Fields::texts(std::string_view key) const {
  const Value* const value = find(key);
  std::vector<std::string> list;
  if (value == nullptr) return list;
  const Array* const items = value->if_array();
  if (items == nullptr) return wrong(key, "a list of strings");
  for (const Value& item : *items) {
    if (!item.is_string()) return wrong(key, "a list of strings");
    list.emplace_back(item.get_string());
  }
  return list;
}

Result<const Object*> Fields::object(std::string_view key) const {
  const Value* const value = find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) return wrong(key, "an object");
  return &value->get_object();
}

Result<Fields> Fields::required_object(std::string_view key) const {
  const Object* const value = HANGAR_TRY(object(key));
  if (value == nullptr) return fail(ErrorKind::InvalidInput, name(key) + ": is required");
  return Fields(*value, name(key), names_);
}

Result<std::vector<Fields>> Fields::objects(std::string_view key) const {
  const Value* const value = find(key);
  std::vector<Fields> list;
  if (value == nullptr) return list;
  const Array* const items = value->if_array();
  if (items == nullptr) return wrong(key, "a list of objects");
  for (std::size_t i = 0; i < items->size(); ++i) {
    const Object* const item = (*items)[i].if_object();
    if (item == nullptr) return wrong(key, "a list of objects");
    list.emplace_back(*item, fmt::format("{}[{}]", name(key), i), names_);
  }
  return list;
}

std::unexpected<Error> Fields::wrong(std::string_view key, std::string_view wanted) const {
  return fail(ErrorKind::InvalidInput, fmt::format("{}: must be {}", name(key), wanted));
}

const Value* Fields::find(std::string_view key) const {
  const Value* value = nullptr;
  if (names_ == Names::Exact) {
    value = object_->if_contains(key);
  } else {
    for (const auto& member : *object_) {
      if (equals_ignoring_case(member.key(), key)) value = &member.value();
    }
  }
  return value == nullptr || value->is_null() ? nullptr : value;
}

}  // namespace hangar::json
