#include "json/value.h"

#include "base/result.h"
#include "json/limits.h"

#include <boost/json/memory_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/storage_ptr.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <string_view>

namespace hangar::json {
namespace {

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(Json, KeepsTheOrderOfKeysAndTheKindOfNumbers) {
  constexpr std::string_view kText =
      R"({"z":1,"a":-2,"m":18446744073709551615,"d":1.5,"n":null,"t":true,"e":{},"l":[[],"x"]})";

  const Value value = parse(kText).value();

  EXPECT_EQ(dump(value), kText);
  EXPECT_TRUE(find(value, {"z"})->is_int64());
  EXPECT_TRUE(find(value, {"m"})->is_uint64());
  EXPECT_TRUE(find(value, {"d"})->is_double());
}

TEST(Json, WritesDoublesAsGoDoes) {
  struct Case {
    double number;
    std::string_view text;
  };
  for (const Case& one :
       {Case{0.0, "0"}, Case{-0.0, "-0"}, Case{1.0, "1"}, Case{100.0, "100"}, Case{1.5, "1.5"},
        Case{0.1, "0.1"}, Case{-2.25, "-2.25"}, Case{1e20, "100000000000000000000"},
        Case{0x1p53, "9007199254740992"}, Case{0x1p64, "18446744073709552000"},
        Case{-123456789012345680000.0, "-123456789012345680000"}, Case{1e21, "1e+21"},
        Case{1.5e300, "1.5e+300"}, Case{1e-6, "0.000001"}, Case{1e-7, "1e-7"},
        Case{-1.25e-9, "-1.25e-9"}, Case{5e-324, "5e-324"},
        Case{1.7976931348623157e308, "1.7976931348623157e+308"}}) {
    EXPECT_EQ(dump(Value(one.number)), one.text);
  }
}

TEST(Json, WritesNullForWhatIsNoNumber) {
  EXPECT_EQ(dump(Value(std::numeric_limits<double>::quiet_NaN())), "null");
  EXPECT_EQ(dump(Value(-std::numeric_limits<double>::infinity())), "null");
}

TEST(Json, ReadsDoublesToTheLastBit) {
  for (const std::string_view text :
       {"0.1", "0.30000000000000004", "2.2250738585072011e-308", "9007199254740993.5",
        "123456789.12345679", "1.0000000000000002", "7.2057594037927933e+16",
        "5.708990770823839e+45"}) {
    const double expected = std::strtod(std::string(text).c_str(), nullptr);

    EXPECT_EQ(parse(text).value().as_double(), expected) << text;
    EXPECT_EQ(parse("[" + std::string(text) + " ]").value().at(0).as_double(), expected) << text;
  }
  EXPECT_EQ(dump(parse("[1.1,2.3,0.7,1e-9]").value()), "[1.1,2.3,0.7,1e-9]");
}

TEST(Json, ReadsIntegersBeyond64BitsAsDoubles) {
  EXPECT_EQ(parse("18446744073709551616").value().as_double(), 18446744073709551616.0);
  EXPECT_EQ(parse("-9223372036854775808").value().as_int64(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse("1e-400").value().as_double(), 0.0);
}

TEST(Json, RefusesWhatIsNoDocument) {
  for (const std::string_view text :
       {"",      " ",      "{",        "[1,]",        "{\"a\":1,}", "{'a':1}",
        "nul",   "NaN",    "Infinity", "-",           "01",         "1.",
        "+1",    "\"\n\"", "\"\\x\"",  "\"\\ud800\"", "1e400",      "-1e400",
        "{} {}", "{}\n{}", "1 2",      "// c\n1",     "{\"a\" 1}",  "\xef\xbb\xbf{}"}) {
    const auto parsed = parse(text);

    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().kind(), ErrorKind::InvalidInput) << text;
  }
}

TEST(Json, RefusesBytesThatAreNotUtf8) {
  for (const std::string_view text : {"\"\x80\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xff\""}) {
    EXPECT_FALSE(parse(text).has_value());
  }
}

TEST(Json, NamesTheByteThatIsWrong) {
  EXPECT_EQ(parse("{\"a\":1} x").error().message(), "json: byte 8: something follows the document");
  EXPECT_TRUE(parse("{\"a\":?}").error().message().starts_with("json: byte 5: "));
}

TEST(Json, TakesTheLastOfSeveralMembersWithOneName) {
  EXPECT_EQ(dump(parse(R"({"a":1,"b":2,"a":3})").value()), R"({"a":3,"b":2})");
}

TEST(Json, BoundsTheDepth) {
  EXPECT_TRUE(parse(nested(limits::kDocumentDepthMax)).has_value());
  const Result<Value> too_deep = parse(nested(limits::kDocumentDepthMax + 1));
  ASSERT_FALSE(too_deep.has_value());
  EXPECT_THAT(too_deep.error().message(), testing::HasSubstr("nested more than 128 levels deep"));
  EXPECT_FALSE(parse(std::string(10'000'000, '[')).has_value());
}

TEST(Json, EscapesWhatJsonCannotSay) {
  const Value value(std::string("a\"\\\b\f\n\r\t\x01\x1f\x7fü\u2028/"));

  EXPECT_EQ(dump(value), "\"a\\\"\\\\\\u0008\\u000c\\n\\r\\t\\u0001\\u001f\x7fü\u2028/\"");
  EXPECT_EQ(parse(dump(value)).value(), value);
}

TEST(Json, PrintsForPeople) {
  EXPECT_EQ(dump_pretty(parse(R"({"a":[1,{"b":null}],"c":{},"d":[]})").value()),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": {},\n"
            "  \"d\": []\n}");
}

TEST(JsonPath, FindsMembersAndNothingElse) {
  Value value = parse(R"({"a":{"b":{"s":"text","i":3,"d":4.0,"t":true,"l":[1]}}})").value();

  EXPECT_EQ(string_at(value, {"a", "b", "s"}), "text");
  EXPECT_EQ(string_at(value, {"a", "b", "i"}), "");
  EXPECT_EQ(int_at(value, {"a", "b", "i"}), 3);
  EXPECT_EQ(int_at(value, {"a", "b", "d"}), 4);
  EXPECT_EQ(int_at(value, {"a", "b", "s"}, 7), 7);
  EXPECT_TRUE(bool_at(value, {"a", "b", "t"}));
  EXPECT_TRUE(bool_at(value, {"nowhere"}, true));
  EXPECT_EQ(array_at(value, {"a", "b", "l"})->size(), 1U);
  EXPECT_EQ(array_at(value, {"a", "b"}), nullptr);
  EXPECT_EQ(object_at(value, {"a", "b"})->size(), 5U);
  EXPECT_EQ(find(value, {"a", "b", "l", "0"}), nullptr);
  EXPECT_EQ(find(value, {}), &value);
}

TEST(JsonPath, NeverMakesAnIntegerOfWhatDoesNotFit) {
  const Value value = parse(R"({"u":18446744073709551615,"d":1e300,"f":1.5})").value();

  EXPECT_EQ(int_at(value, {"u"}, -1), -1);
  EXPECT_EQ(int_at(value, {"d"}, -1), -1);
  EXPECT_EQ(int_at(value, {"f"}, -1), -1);
}

TEST(JsonPath, SetsAndErasesMembers) {
  Value value = parse(R"({"a":5,"b":1,"c":2})").value();

  set_at(value, {"a", "x", "y"}, 1);
  set_at(value, {"new"}, Array{});
  erase_at(value, {"b"});
  erase_at(value, {"a", "nothing", "here"});
  erase_at(value, {"c", "no object"});

  EXPECT_EQ(dump(value), R"({"a":{"x":{"y":1}},"c":2,"new":[]})");
}

TEST(Json, SortsKeysAtEveryLevel) {
  Value value = parse(R"({"b":[{"z":1,"y":2}],"a":{"d":1,"c":2}})").value();

  sort_keys(value);

  EXPECT_EQ(dump(value), R"({"a":{"c":2,"d":1},"b":[{"y":2,"z":1}]})");
}

TEST(JsonEqual, ComparesByMeaning) {
  struct Case {
    std::string_view left;
    std::string_view right;
    bool equal;
  };
  for (const Case& one :
       {Case{R"({"a":1,"b":2})", R"({"b":2,"a":1})", true}, Case{"1", "1.0", true},
        Case{"1", "1.5", false}, Case{"[1,2]", "[2,1]", false}, Case{"null", "false", false},
        Case{R"({"a":1})", R"({"a":1,"b":null})", false}, Case{"\"1\"", "1", false},
        Case{"18446744073709551615", "18446744073709551615", true},
        Case{"18446744073709551615", "-1", false},
        Case{"18446744073709551615", "1.8446744073709552e19", false},
        Case{"9007199254740993", "9007199254740992.0", false},
        Case{"9223372036854775807", "9223372036854775808.0", false},
        Case{"9223372036854775808", "9223372036854775808.0", true}, Case{"-1.0", "-1", true}}) {
    EXPECT_EQ(equal(parse(one.left).value(), parse(one.right).value()), one.equal)
        << one.left << " " << one.right;
    EXPECT_EQ(equal(parse(one.right).value(), parse(one.left).value()), one.equal)
        << one.right << " " << one.left;
  }
}

// Measures the most memory that is allocated at the same time, as parse() allocates it.
class CountingMemory final : public boost::json::memory_resource {
 public:
  [[nodiscard]] std::size_t peak_bytes() const { return peak_bytes_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t /*alignment*/) override {
    held_bytes_ += bytes;
    peak_bytes_ = std::max(peak_bytes_, held_bytes_);
    return ::operator new(bytes);
  }
  void do_deallocate(void* at, std::size_t bytes, std::size_t /*alignment*/) override {
    held_bytes_ -= bytes;
    ::operator delete(at);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::size_t held_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
};

TEST(Json, TakesNoMoreMemoryForADocumentThanItSays) {
  constexpr std::size_t kCount = 10'000;
  struct Case {
    std::string_view name;
    std::string_view item;
  };
  for (const Case& one :
       {Case{"numbers", "1"}, Case{"empty texts", R"("")"}, Case{"empty objects", "{}"},
        Case{"empty lists", "[]"}, Case{"nested lists", "[[[[]]]]"},
        Case{"short members", R"({"":1})"}, Case{"many members", R"({"a":1,"b":2,"c":3,"d":4})"},
        Case{"texts", R"("abcdefghijklmnopqrstuvwxyz")"},
        Case{"an object of Kubernetes",
             R"({"metadata":{"name":"a","labels":{"app":"web"}},"spec":{"replicas":1}})"}}) {
    SCOPED_TRACE(one.name);
    std::string text = "[";
    for (std::size_t i = 0; i < kCount; ++i) {
      if (i > 0) text += ",";
      text += one.item;
    }
    text += "]";

    CountingMemory memory;
    {
      const Value copy(parse(text).value(), boost::json::storage_ptr(&memory));
      EXPECT_LE(memory.peak_bytes(), parsed_bytes_max(text));
    }
    // Reading takes the elements of a list twice: on the parser's stack, and in the list.
    CountingMemory reading;
    const Value read = boost::json::parse(text, boost::json::storage_ptr(&reading));
    EXPECT_LE(reading.peak_bytes() + kCount * sizeof(Value), parsed_bytes_max(text));
  }
}

}  // namespace
}  // namespace hangar::json
