// Reads JSON text without building a document: finds the few members that a caller asks for and
// checks the rest.
//
// Lists of tens of thousands of objects are read at start, and their items are kept as bytes.
// json::parse accepts everything that Skim accepts, so bytes checked here can be parsed later: all
// but what is nested deeper than limits::kDocumentDepthMax.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::json {

// A cursor over one document. The first mistake in the text ends it: every later call reports that
// nothing follows, and `status()` describes the mistake. Views are into the text.
//
//   Skim skim(text);
//   for (auto members = skim.object(); auto key = skim.next_key(members);)
//     if (*key == "kind") kind = skim.string(); else skim.value();
//   HANGAR_TRY(skim.finish());
class Skim {
 public:
  // `depth`: how many levels deep the text is nested already.
  explicit Skim(std::string_view text, std::uint32_t depth = 0);

  // The caller's position in an object or array.
  struct Members {
    bool first = true;
  };
  // The next value must be an object (or array), which is entered. Call `next_key` or
  // `next_element` until it reports that there is no more, and read one value after each key
  // or element.
  [[nodiscard]] Members object();
  [[nodiscard]] Members array();
  // The key as written, without quotes: no caller asks for keys that need escapes.
  [[nodiscard]] std::optional<std::string_view> next_key(Members& members);
  [[nodiscard]] bool next_element(Members& members);

  // Checks and skips any value; returns its text.
  std::string_view value();
  // A string as written, without quotes; null gives an empty string.
  [[nodiscard]] std::string_view raw_string();
  // A string with its escapes resolved.
  [[nodiscard]] std::string string();
  // The first character of the next value: '{', '[', '"', 't', 'f', 'n', '-' or a digit; 0 at
  // the end.
  [[nodiscard]] char peek();
  // True when the next value is null, which is skipped.
  [[nodiscard]] bool skip_null();

  // The document must end here. InvalidInput with the byte offset of the first mistake.
  [[nodiscard]] Result<> finish();
  [[nodiscard]] Result<> status() const;
  [[nodiscard]] bool is_failed() const { return mistake_ != nullptr; }
  // Ends the reading because of a mistake that the caller found; `mistake` is a string literal.
  void refuse(const char* mistake);

  [[nodiscard]] std::size_t offset() const { return static_cast<std::size_t>(at_ - begin_); }
  // True when blanks were skipped between tokens so far; text without any is compact.
  [[nodiscard]] bool saw_blanks() const { return saw_blanks_; }

 private:
  void skip_blanks();
  bool take(char wanted);
  bool pass_value();
  bool pass_container(char close);
  bool pass_string();
  bool pass_escape();
  bool pass_utf8();
  bool pass_number();
  bool pass_word(std::string_view word);

  const char* begin_;
  const char* at_;
  const char* end_;
  const char* mistake_ = nullptr;
  std::uint32_t depth_;
  bool saw_blanks_ = false;
};

// Resolves the escapes of a checked JSON string (without its quotes).
[[nodiscard]] std::string unescape(std::string_view raw);

// Checked JSON text with the blanks between its tokens removed.
[[nodiscard]] std::string compact(std::string_view text);

}  // namespace hangar::json
