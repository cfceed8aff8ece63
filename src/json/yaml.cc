#include "json/yaml.h"

#include "base/result.h"
#include "base/utf8.h"
#include "json/internal/parse.h"
#include "json/internal/scalar.h"
#include "json/limits.h"
#include "json/value.h"

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <spanstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::json {

namespace {

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

// Counted from one, in bytes.
struct Position {
  std::size_t line = 1;
  std::size_t column = 1;
  auto operator<=>(const Position&) const = default;
};

Position position_at(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_break = before.rfind('\n');
  const std::size_t line_begin = line_break == std::string_view::npos ? 0 : line_break + 1;
  return {.line = 1 + static_cast<std::size_t>(std::ranges::count(before, '\n')),
          .column = 1 + offset - line_begin};
}

Position position_of(const YAML::Mark& mark) {
  return {.line = static_cast<std::size_t>(std::max(mark.line, 0)) + 1,
          .column = static_cast<std::size_t>(std::max(mark.column, 0)) + 1};
}

struct Failure {
  Position position;
  std::string message;
};

std::unexpected<Error> to_error(const Failure& failure) {
  return fail(ErrorKind::InvalidInput, fmt::format("line {}, column {}: {}", failure.position.line,
                                                   failure.position.column, failure.message));
}

// Finds the first byte that YAML forbids. yaml-cpp takes some of these for the end of the text and
// would drop what follows.
std::optional<Failure> find_forbidden(std::string_view text) {
  if (const std::size_t valid = valid_utf8_prefix(text); valid < text.size()) {
    return Failure{.position = position_at(text, valid), .message = "bytes that are not UTF-8"};
  }
  const auto* found = std::ranges::find_if(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f;
  });
  if (found == text.end()) return std::nullopt;
  return Failure{.position = position_at(text, static_cast<std::size_t>(found - text.begin())),
                 .message = fmt::format("control character 0x{:02x}", *found)};
}

// yaml-cpp decodes the escapes \N and \_ (U+0085, U+00A0) to one byte each, which is not UTF-8. The
// rest of its output is UTF-8, so such a byte stands where a character has to begin, and this
// completes it. Empty for any other invalid byte.
std::optional<std::string> with_whole_escapes(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t valid = valid_utf8_prefix(text);
    out += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) return out;
    if (text.front() != '\x85' && text.front() != '\xa0') return std::nullopt;
    out.append("\xc2").append(1, text.front());
    text.remove_prefix(1);
  }
}

// Turns yaml-cpp's events into values. It cannot stop the parser (only an exception could), so
// after the first failure it ignores all further events.
class EventReader final : public YAML::EventHandler {
 public:
  EventReader(std::string_view text, std::uint64_t alias_bytes_max)
      : text_(text), alias_bytes_max_(alias_bytes_max) {
    find_lines();
  }

  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
  [[nodiscard]] std::vector<Value> take() { return std::move(documents_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    anchors_.clear();
    // yaml-cpp begins a new document wherever a node ends and something else follows. On a token
    // that it cannot use ("--- ,") it begins one document after the other, for ever; a line can
    // begin only one.
    if (document_count_++ > 0 && (mark.line <= document_line_ || !begins_document(mark.line))) {
      set_failure(mark, "a second document needs a line '---' before it");
    }
    document_line_ = mark.line;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (failure_) return;
    if (expects_key()) return set_failure(mark, "a key is null");
    if (!frames_.empty() && frames_.back().key && !has_colon(frames_.back())) {
      return set_failure(frames_.back().key_mark, "a key without its ':'");
    }
    complete(mark, {}, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (failure_) return;
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) return set_failure(mark, "an alias inside its own anchor");
    const Sized& sized = found->second;
    if (expects_key()) {
      const String* text = sized.value.if_string();
      if (text == nullptr) return set_failure(mark, "a key that is not a string");
      return set_key(mark, std::string(*text), /*merge=*/false);
    }
    if (!spend(mark, sized.cost)) return;
    if (frames_.size() + sized.depth > limits::kDocumentDepthMax) return set_too_deep(mark);
    complete(mark, sized, YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& written) override {
    if (failure_) return;
    const std::optional<std::string> text = with_whole_escapes(written);
    if (!text) return set_failure(mark, "bytes that are not UTF-8");
    if (expects_key()) {
      if (anchor != YAML::NullAnchor) {
        anchors_[anchor] = {.value = Value(*text), .cost = text->size()};
      }
      return set_key(mark, *text, tag == "?" && *text == "<<");
    }
    auto value = resolve(tag, *text);
    if (auto* message = std::get_if<std::string>(&value)) return set_failure(mark, *message);
    complete(mark, {.value = std::get<Value>(std::move(value)), .cost = kNodeCost + text->size()},
             anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    begin(mark, tag, anchor, style, Array());
  }
  void OnSequenceEnd() override { end(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    begin(mark, tag, anchor, style, Object());
  }
  void OnMapEnd() override {
    if (failure_) return;
    // The object's own members win over merged ones, and earlier merges over later ones.
    Frame& frame = frames_.back();
    for (Object& source : std::exchange(frame.merged, {})) {
      for (auto& member : source)
        frame.container.get_object().emplace(member.key(), std::move(member.value()));
    }
    end();
  }

 private:
  static constexpr std::size_t kNodeCost = sizeof(Value);

  struct Sized {
    Value value;
    std::size_t cost = kNodeCost;  // Roughly the bytes that a copy takes.
    std::size_t depth = 0;         // Levels of containers.
  };
  struct Frame {
    YAML::Mark mark;
    YAML::anchor_t anchor = YAML::NullAnchor;
    bool is_block = false;
    Value container;
    std::size_t cost = kNodeCost;
    std::size_t depth = 1;
    std::optional<std::string> key = {};  // In an object, between a key and its value.
    YAML::Mark key_mark = {};
    bool key_merges = false;
    std::vector<Object> merged = {};
  };

  void find_lines() {
    for (std::size_t at = 0; at != std::string_view::npos;) {
      lines_.push_back(at);
      at = text_.find('\n', at);
      if (at != std::string_view::npos) ++at;
    }
  }

  [[nodiscard]] std::string_view line(std::size_t index) const {
    const std::string_view rest = text_.substr(lines_[index]);
    return rest.substr(0, rest.find('\n'));
  }

  // True when the line begins with `---`, or an end mark `...` separates it from the
  // document before.
  [[nodiscard]] bool begins_document(int index) const {
    auto at = static_cast<std::size_t>(std::max(index, 0));
    if (at >= lines_.size()) return true;  // The end of the text.
    if (line(at).starts_with("---")) return true;
    while (at-- > 0) {
      const std::string_view before = line(at);
      if (before.starts_with("...")) return true;
      const std::size_t first = before.find_first_not_of(" \t\r");
      if (first != std::string_view::npos && before[first] != '#') return false;
    }
    return false;
  }

  // yaml-cpp takes a line that is only a word for a key whose value is null. In flow style ({a, b})
  // that is YAML; in block style it is a forgotten colon or a damaged text.
  [[nodiscard]] bool has_colon(const Frame& frame) const {
    const auto index = static_cast<std::size_t>(std::max(frame.key_mark.line, 0));
    if (!frame.is_block || index >= lines_.size()) return true;
    const std::string_view text = line(index);
    const auto column =
        std::min(static_cast<std::size_t>(std::max(frame.key_mark.column, 0)), text.size());
    if (text.substr(0, column).contains('?')) return true;  // An explicit key.
    std::string_view rest = text.substr(column);
    // A key whose text differs from its value (quotes, anchors) may contain a colon itself.
    if (rest.starts_with(*frame.key)) rest.remove_prefix(frame.key->size());
    return rest.contains(':');
  }

  [[nodiscard]] bool expects_key() const {
    return !frames_.empty() && frames_.back().container.is_object() && !frames_.back().key;
  }

  void set_failure(const YAML::Mark& mark, std::string message) {
    if (!failure_) failure_ = {.position = position_of(mark), .message = std::move(message)};
  }
  void set_too_deep(const YAML::Mark& mark) {
    set_failure(mark, fmt::format("more than {} levels deep", limits::kDocumentDepthMax));
  }

  // Takes `cost` from the budget for the copies that aliases and anchors make.
  bool spend(const YAML::Mark& mark, std::size_t cost) {
    if (cost > budget_) {
      set_failure(mark, fmt::format("aliases that stand for more than {} bytes", alias_bytes_max_));
      return false;
    }
    budget_ -= cost;
    return true;
  }

  void set_key(const YAML::Mark& mark, std::string key, bool merge) {
    Frame& frame = frames_.back();
    if (!merge && frame.container.get_object().contains(key)) {
      return set_failure(mark, fmt::format("the key \"{}\" is given twice", key));
    }
    frame.cost += key.size() + kNodeCost;
    frame.key = std::move(key);
    frame.key_mark = mark;
    frame.key_merges = merge;
  }

  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             YAML::EmitterStyle::value style, Value container) {
    if (failure_) return;
    if (expects_key()) return set_failure(mark, "a key that is not a string");
    if (frames_.size() >= limits::kDocumentDepthMax) return set_too_deep(mark);
    const std::string_view expected = container.is_object() ? "map" : "seq";
    if (tag != "?" && tag != "!" && tag != std::string(kCoreTag).append(expected)) {
      return set_failure(mark, fmt::format("the tag {} is not supported here", tag));
    }
    frames_.push_back({.mark = mark,
                       .anchor = anchor,
                       .is_block = style == YAML::EmitterStyle::Block,
                       .container = std::move(container)});
  }

  void end() {
    if (failure_) return;
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    complete(frame.mark,
             {.value = std::move(frame.container), .cost = frame.cost, .depth = frame.depth},
             frame.anchor);
  }

  // Adds a complete value to its container.
  void complete(const YAML::Mark& mark, Sized sized, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      if (!spend(mark, sized.cost)) return;
      anchors_[anchor] = sized;
    }
    if (frames_.empty()) {
      if (!sized.value.is_null()) documents_.push_back(std::move(sized.value));
      return;
    }
    Frame& frame = frames_.back();
    frame.cost += sized.cost;
    frame.depth = std::max(frame.depth, sized.depth + 1);
    if (Array* array = frame.container.if_array()) {
      array->push_back(std::move(sized.value));
      return;
    }
    const std::string key = *std::exchange(frame.key, std::nullopt);
    if (frame.key_merges) return merge(mark, frame, std::move(sized.value));
    frame.container.get_object().emplace(key, std::move(sized.value));
  }

  void merge(const YAML::Mark& mark, Frame& frame, Value source) {
    if (Object* object = source.if_object()) {
      frame.merged.push_back(std::move(*object));
      return;
    }
    const Array* array = source.if_array();
    if (array == nullptr || !std::ranges::all_of(*array, &Value::is_object)) {
      return set_failure(mark, "<< merges mappings only");
    }
    for (Value& item : source.get_array())
      frame.merged.push_back(std::move(item.get_object()));
  }

  // The value, or the description of what is wrong with it.
  static std::variant<Value, std::string> resolve(const std::string& tag, const std::string& text) {
    if (tag == "!" || tag == std::string(kCoreTag).append("str")) return Value(text);
    internal::Scalar scalar = internal::resolve_plain(text);
    if (tag == "?") {
      if (scalar.kind == internal::ScalarKind::NotFinite) {
        return fmt::format("{} has no form in JSON", text);
      }
      return std::move(scalar.value);
    }
    using enum internal::ScalarKind;
    const std::string_view name = std::string_view(tag).starts_with(kCoreTag)
                                      ? std::string_view(tag).substr(kCoreTag.size())
                                      : std::string_view();
    const bool fits = (name == "null" && scalar.kind == Null) ||
                      (name == "bool" && scalar.kind == Bool) ||
                      (name == "int" && scalar.kind == Integer) ||
                      (name == "float" && (scalar.kind == Float || scalar.kind == Integer));
    if (fits) return std::move(scalar.value);
    if (name == "null" || name == "bool" || name == "int" || name == "float") {
      return fmt::format("\"{}\" is not of type {}", text, name);
    }
    return fmt::format("the tag {} is not supported here", tag);
  }

  std::string_view text_;
  const std::uint64_t alias_bytes_max_;
  std::vector<std::size_t> lines_;  // The offset at which each line begins.
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Sized> anchors_;  // The complete ones of the current document.
  std::uint64_t budget_ = alias_bytes_max_;
  std::size_t document_count_ = 0;
  int document_line_ = 0;  // The line at which the current document begins.
  std::vector<Value> documents_;
  std::optional<Failure> failure_;
};

std::variant<std::vector<Value>, Failure> read_yaml(std::string_view text,
                                                    std::uint64_t alias_bytes_max) {
  EventReader builder(text, alias_bytes_max);
  try {
    std::ispanstream stream(std::span<const char>(text.data(), text.size()));
    YAML::Parser parser(stream);
    while (!builder.failure() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& exception) {
    if (!builder.failure()) {
      return Failure{.position = position_of(exception.mark), .message = exception.msg};
    }
  } catch (const std::exception& exception) {
    return Failure{.position = {}, .message = exception.what()};
  }
  if (builder.failure()) return *builder.failure();
  return builder.take();
}

// `documents` is std::nullopt when the text is not a sequence of JSON documents; `failure` then
// says where that showed. `is_final`: reading the text as YAML would fail, too.
struct JsonAttempt {
  std::optional<std::vector<Value>> documents = {};
  Failure failure = {};
  bool is_final = false;
};

JsonAttempt read_json(std::string_view text) {
  std::vector<Value> documents;
  bool separated = true;
  for (std::size_t at = 0;;) {
    at = text.find_first_not_of(" \t\r\n", at);
    if (at == std::string_view::npos) return {.documents = std::move(documents)};
    const std::string_view rest = text.substr(at);
    const bool at_line_begin = at == 0 || text[at - 1] == '\n';
    if (at_line_begin && rest.starts_with("---") &&
        (rest.size() == 3 || rest.find_first_of(" \t\r\n", 3) == 3)) {
      separated = true;
      at += 3;
      continue;
    }
    if (!separated && (rest.front() == '{' || rest.front() == '[')) {
      return {.failure = {.position = position_at(text, at),
                          .message = "a second document needs a line '---' before it"},
              .is_final = true};
    }
    if (!separated || (rest.front() != '{' && rest.front() != '[')) {
      return {.failure = {.position = position_at(text, at),
                          .message = "something follows the document"}};
    }
    auto parsed = internal::parse_prefix(rest);
    if (auto* failure = std::get_if<internal::ParseFailure>(&parsed)) {
      return {.failure = {.position = position_at(text, at + failure->offset),
                          .message = std::move(failure->message)}};
    }
    auto& [value, size] = std::get<internal::ParsedPrefix>(parsed);
    documents.push_back(std::move(value));
    separated = false;
    at += size;
  }
}

}  // namespace

Result<std::vector<Value>> parse_yaml_stream(std::string_view text, std::uint64_t alias_bytes_max) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool maybe_json =
      first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
  JsonAttempt json;
  if (maybe_json) {
    json = read_json(text);
    if (json.documents) return *std::move(json.documents);
    if (json.is_final) return to_error(json.failure);
  }
  if (const auto forbidden = find_forbidden(text)) return to_error(*forbidden);
  auto yaml = read_yaml(text, alias_bytes_max);
  if (auto* documents = std::get_if<std::vector<Value>>(&yaml)) return std::move(*documents);
  // Reports the failure of the reader that got further: it fits the text better.
  const Failure& failure = std::get<Failure>(yaml);
  return to_error(maybe_json && json.failure.position > failure.position ? json.failure : failure);
}

Result<Value> parse_yaml(std::string_view text, std::uint64_t alias_bytes_max) {
  std::vector<Value> documents = HANGAR_TRY(parse_yaml_stream(text, alias_bytes_max));
  if (documents.size() != 1) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("expected one document, not {}: give exactly one", documents.size()));
  }
  return std::move(documents.front());
}

}  // namespace hangar::json
