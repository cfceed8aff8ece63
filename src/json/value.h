// JSON documents as values: the only door to the JSON library, whose DOM this is.
//
// A document is parsed where something in it is changed or looked at; whatever is only kept or
// passed on stays bytes. Numbers keep their kind (signed, unsigned, double); keys keep their order.
#pragma once

#include "base/result.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace hangar::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;
using String = boost::json::string;

// Exactly one document. InvalidInput (with the byte offset) for anything else, for documents deeper
// than limits::kDocumentDepthMax, bytes that are not UTF-8 and numbers beyond a double. Of several
// members with one name the last counts, as for the API server.
[[nodiscard]] Result<Value> parse(std::string_view text);

// Compact, one line. Numbers look as Go writes them: 1.5, 1e+21, and 3 for the double 3.0. Strings
// are taken to be UTF-8, as parse() makes them.
[[nodiscard]] std::string dump(const Value& value);
// Two spaces an indent, for people.
[[nodiscard]] std::string dump_pretty(const Value& value);

using Path = std::initializer_list<std::string_view>;

// The member at the end of `path`, or null when any step is missing or no object.
[[nodiscard]] const Value* find(const Value& value, Path path);
[[nodiscard]] Value* find(Value& value, Path path);

// The text at `path`; empty when there is none or it is no string.
[[nodiscard]] std::string_view string_at(const Value& value, Path path);
// The integer at `path`; `otherwise` when there is none.
[[nodiscard]] std::int64_t int_at(const Value& value, Path path, std::int64_t otherwise = 0);
[[nodiscard]] bool bool_at(const Value& value, Path path, bool otherwise = false);
// The object or array at `path`; null when there is none or it is of another kind.
[[nodiscard]] const Object* object_at(const Value& value, Path path);
[[nodiscard]] const Array* array_at(const Value& value, Path path);

// Makes objects along `path` as needed (replacing what is no object) and sets the last member.
void set_at(Value& value, Path path, Value member);
// Removes the member at `path` if it is there.
void erase_at(Value& value, Path path);

// Puts the members of every object in the order of their names, for output that people compare.
void sort_keys(Value& value);

// Equal as JSON: the order of keys does not matter, and 1 equals 1.0.
[[nodiscard]] bool equal(const Value& left, const Value& right);

}  // namespace hangar::json
