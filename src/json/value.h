// JSON documents as values. Only this folder uses the JSON library, whose DOM this is.
//
// A document is parsed only where the code reads or changes something in it; a document that is
// only kept or passed on stays bytes. Numbers keep their kind (signed, unsigned, double); keys keep
// their order.
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

// Parses exactly one document. InvalidInput (with the byte offset) for anything else, for documents
// deeper than limits::kDocumentDepthMax, bytes that are not UTF-8 and numbers beyond a double. Of
// several members with one name the last one counts, as for the API server.
[[nodiscard]] Result<Value> parse(std::string_view text);

// An upper bound of the memory that parse() takes for the text, including its result. Counts the
// text's separators: a byte of `[1,1,1` costs many times as much as one of a long string.
[[nodiscard]] std::uint64_t parsed_bytes_max(std::string_view text);

// Compact, one line. Numbers look as Go writes them: 1.5, 1e+21, and 3 for the double 3.0. Strings
// must be UTF-8, as parse() makes them.
[[nodiscard]] std::string dump(const Value& value);
// For people: an indent of two spaces.
[[nodiscard]] std::string dump_pretty(const Value& value);

using Path = std::initializer_list<std::string_view>;

// The member at the end of `path`, or null when a step is missing or not an object.
[[nodiscard]] const Value* find(const Value& value, Path path);
[[nodiscard]] Value* find(Value& value, Path path);

// The text at `path`; empty when it is missing or not a string.
[[nodiscard]] std::string_view string_at(const Value& value, Path path);
// The integer at `path`; `otherwise` when it is missing or not an integer.
[[nodiscard]] std::int64_t int_at(const Value& value, Path path, std::int64_t otherwise = 0);
[[nodiscard]] bool bool_at(const Value& value, Path path, bool otherwise = false);
// The object or array at `path`; null when it is missing or of another kind.
[[nodiscard]] const Object* object_at(const Value& value, Path path);
[[nodiscard]] const Array* array_at(const Value& value, Path path);

// Creates objects along `path` as needed (replacing values that are not objects) and sets the
// last member.
void set_at(Value& value, Path path, Value member);
// Removes the member at `path` if it exists.
void erase_at(Value& value, Path path);

// Sorts the members of every object by name, for output that people compare.
void sort_keys(Value& value);

// Equal as JSON: the order of keys does not matter, and 1 equals 1.0.
[[nodiscard]] bool equal(const Value& left, const Value& right);

}  // namespace hangar::json
