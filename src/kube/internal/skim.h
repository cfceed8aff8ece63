// Reads through JSON text without building a document: finds the few members that are asked for
// and checks the rest.
//
// Lists of tens of thousands of objects are read at start; their items are kept as bytes. What this
// accepts, json::parse accepts too, so that bytes once checked can be parsed without doubt later.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::kube::internal {

// A cursor over one document. The first mistake in the text ends it: every call from then on says
// that there is nothing, and `status()` says what was wrong. Views are into the text.
//
//   Skim skim(text);
//   for (auto members = skim.object(); auto key = skim.next_key(members);)
//     if (*key == "kind") kind = skim.string(); else skim.value();
//   HANGAR_TRY(skim.finish());
class Skim {
 public:
  // `depth`: how many levels the text is already nested in.
  explicit Skim(std::string_view text, std::uint32_t depth = 0);

  // Where a caller stands within an object or array.
  struct Members {
    bool first = true;
  };
  // The next value must be an object (or array), which is entered. `next_key` or `next_element`
  // must be called until it says that there is no more; each key or element must be followed by
  // reading one value.
  [[nodiscard]] Members object();
  [[nodiscard]] Members array();
  // The key as it is written, without quotes: keys that need escapes are never asked for.
  [[nodiscard]] std::optional<std::string_view> next_key(Members& members);
  [[nodiscard]] bool next_element(Members& members);

  // Checks and passes over any value; its text.
  std::string_view value();
  // A string as it is written, without quotes; a null is an empty string.
  [[nodiscard]] std::string_view raw_string();
  // A string with its escapes resolved.
  [[nodiscard]] std::string string();
  // What the next value begins with: '{', '[', '"', 't', 'f', 'n', '-' or a digit; 0 at the end.
  [[nodiscard]] char peek();
  // True when the next value is null, which is passed over.
  [[nodiscard]] bool skip_null();

  // The document must end here. InvalidInput with the byte offset of the first mistake.
  [[nodiscard]] Result<> finish();
  [[nodiscard]] Result<> status() const;
  [[nodiscard]] bool is_failed() const { return mistake_ != nullptr; }
  // Ends the reading with a mistake of the caller's finding: a literal.
  void refuse(const char* mistake);

  [[nodiscard]] std::size_t offset() const { return static_cast<std::size_t>(at_ - begin_); }
  // Whether blanks were passed over between tokens so far: text without any is compact.
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

// The text that a JSON string (without its quotes) that was checked stands for.
[[nodiscard]] std::string unescape(std::string_view raw);

// Checked JSON text without blanks between its tokens.
[[nodiscard]] std::string compact(std::string_view text);

}  // namespace hangar::kube::internal
