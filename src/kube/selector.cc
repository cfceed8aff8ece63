#include "kube/selector.h"

#include "base/dns_name.h"
#include "base/number.h"
#include "base/result.h"
#include "kube/labels.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

namespace {

constexpr std::string_view kName = "metadata.name";
constexpr std::string_view kNamespace = "metadata.namespace";

bool is_alphanumeric(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9');
}

// ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9], of at most 63 bytes.
bool is_name(std::string_view text) {
  constexpr std::size_t kNameBytesMax = 63;
  return !text.empty() && text.size() <= kNameBytesMax && is_alphanumeric(text.front()) &&
         is_alphanumeric(text.back()) && std::ranges::all_of(text, [](char character) {
           return is_alphanumeric(character) || character == '-' || character == '_' ||
                  character == '.';
         });
}

bool is_label_key(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_name(text);
  return is_dns_subdomain(text.substr(0, slash)) && is_name(text.substr(slash + 1));
}

bool is_label_value(std::string_view text) {
  return text.empty() || is_name(text);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return parse_number<std::int64_t>(text);
}

std::unexpected<Error> invalid(std::string_view found, std::string_view expected) {
  return fail(ErrorKind::InvalidInput,
              fmt::format("label selector: found '{}', expected {}", found, expected));
}

}  // namespace

// Tokens are the operators, made of ()!=,<>, and the words between these and blanks.
class LabelSelector::Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) { advance(); }

  Result<std::vector<Requirement>> run() {
    std::vector<Requirement> out;
    if (token_.empty()) return out;
    while (true) {
      out.push_back(HANGAR_TRY(requirement()));
      if (token_.empty()) return out;
      if (token_ != ",") return invalid(token_, "',' or the end");
      advance();
      if (token_ != "!" && !is_word()) return invalid(token_, "a key after ','");
    }
  }

 private:
  static bool is_symbol(char character) { return std::string_view("()!=,<>").contains(character); }
  static bool is_blank(char character) { return std::string_view(" \t\r\n").contains(character); }

  [[nodiscard]] bool is_word() const { return !token_.empty() && !is_symbol(token_.front()); }

  void advance() {
    while (!rest_.empty() && is_blank(rest_.front()))
      rest_.remove_prefix(1);
    std::size_t size = 0;
    if (rest_.starts_with("==") || rest_.starts_with("!=")) {
      size = 2;
    } else if (!rest_.empty() && is_symbol(rest_.front())) {
      size = 1;
    } else {
      while (size < rest_.size() && !is_symbol(rest_[size]) && !is_blank(rest_[size]))
        ++size;
    }
    token_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }

  std::string_view take() {
    const std::string_view taken = token_;
    advance();
    return taken;
  }

  Result<Requirement> requirement() {
    Requirement out;
    const bool is_negated = token_ == "!";
    if (is_negated) advance();
    if (!is_word() || token_ == "in" || token_ == "notin") return invalid(token_, "a key");
    out.key = take();
    if (!is_label_key(out.key)) return invalid(out.key, "a valid label key");
    if (is_negated) {
      out.op = Operator::DoesNotExist;
      return out;
    }
    if (token_.empty() || token_ == ",") return out;
    const std::string_view op = take();
    if (op == "in" || op == "notin") {
      out.op = op == "in" ? Operator::In : Operator::NotIn;
      out.values = HANGAR_TRY(values());
    } else if (op == "=" || op == "==" || op == "!=") {
      out.op = op == "!=" ? Operator::NotIn : Operator::In;
      out.values.emplace_back(HANGAR_TRY(value()));
    } else if (op == ">" || op == "<") {
      out.op = op == ">" ? Operator::Greater : Operator::Less;
      out.values.emplace_back(HANGAR_TRY(value()));
      if (!parse_integer(out.values.front())) return invalid(out.values.front(), "an integer");
    } else {
      return invalid(op, "an operator");
    }
    for (const std::string& one : out.values)
      if (!is_label_value(one)) return invalid(one, "a valid label value");
    std::ranges::sort(out.values);
    return out;
  }

  // A missing value is the empty one: "a=", "a in (b,)".
  Result<std::string> value() {
    if (token_.empty() || token_ == ",") return std::string();
    if (!is_word()) return invalid(token_, "a value");
    return std::string(take());
  }

  Result<std::vector<std::string>> values() {
    if (token_ != "(") return invalid(token_, "'('");
    advance();
    std::vector<std::string> out;
    while (true) {
      if (is_word()) {
        out.emplace_back(take());
      } else {
        out.emplace_back();
      }
      if (token_ == ")") break;
      if (token_ != ",") return invalid(token_, "',' or ')'");
      advance();
    }
    advance();
    return out;
  }

  std::string_view rest_;
  std::string_view token_;  // Empty at the end.
};

Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  LabelSelector out;
  out.text_ = text;
  out.requirements_ = HANGAR_TRY(Parser(text).run());
  return out;
}

bool LabelSelector::matches(const Labels& labels) const {
  return std::ranges::all_of(requirements_,
                             [&labels](const Requirement& one) { return holds(one, labels); });
}

bool LabelSelector::holds(const Requirement& requirement, const Labels& labels) {
  const std::optional<std::string_view> found = labels.find(requirement.key);
  const auto is_listed = [&] { return std::ranges::binary_search(requirement.values, *found); };
  switch (requirement.op) {
    case Operator::Exists:
      return found.has_value();
    case Operator::DoesNotExist:
      return !found;
    case Operator::In:
      return found && is_listed();
    case Operator::NotIn:
      return !found || !is_listed();
    case Operator::Greater:
    case Operator::Less: {
      const auto value = found ? parse_integer(*found) : std::nullopt;
      const auto bound = parse_integer(requirement.values.front());
      if (!value || !bound) return false;
      return requirement.op == Operator::Greater ? *value > *bound : *value < *bound;
    }
  }
  return false;
}

Result<FieldSelector> FieldSelector::parse(std::string_view text) {
  FieldSelector out;
  out.text_ = text;
  for (const std::string_view text_of_term : terms_in_order(text)) {
    auto term = parse_term(text_of_term);
    if (!term) return std::unexpected(std::move(term.error()));
    out.terms_.push_back(*std::move(term));
  }
  return out;
}

// A comma without a backslash ends a term. apimachinery sorts the terms by their text before it
// looks for a required name: of two, the server authorises the first in that order.
std::vector<std::string_view> FieldSelector::terms_in_order(std::string_view text) {
  std::vector<std::string_view> terms;
  while (!text.empty()) {
    std::size_t end = 0;
    while (end < text.size() && text[end] != ',')
      end += text[end] == '\\' ? 2 : 1;
    end = std::min(end, text.size());
    if (end != 0) terms.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::ranges::sort(terms);
  return terms;
}

Result<FieldSelector::Term> FieldSelector::parse_term(std::string_view term) {
  const auto no_operator = [term] {
    return fail(ErrorKind::InvalidInput, fmt::format("field selector: '{}' has no operator", term));
  };
  const std::size_t at = term.find_first_of("=!");
  if (at == std::string_view::npos) return no_operator();
  std::string_view value = term.substr(at);
  Term made{.field = std::string(term.substr(0, at)), .is_equal = !value.starts_with('!')};
  if (value.starts_with("!=") || value.starts_with("==")) {
    value.remove_prefix(2);
  } else if (made.is_equal) {
    value.remove_prefix(1);
  } else {
    return no_operator();
  }
  for (std::size_t index = 0; index < value.size(); ++index) {
    const bool is_escape = value[index] == '\\';
    if (is_escape) ++index;
    const bool is_special = index < value.size() && std::string_view("\\,=").contains(value[index]);
    if (index == value.size() || is_escape != is_special) {
      return fail(
          ErrorKind::InvalidInput,
          fmt::format("field selector: '{}' has an invalid escape or an unescaped '='", term));
    }
    made.value += value[index];
  }
  return made;
}

bool FieldSelector::matches(const ObjectKey& key) const {
  return std::ranges::all_of(terms_, [&key](const Term& term) {
    if (term.field == kName) return (key.name == term.value) == term.is_equal;
    if (term.field == kNamespace) return (key.namespace_ == term.value) == term.is_equal;
    return true;
  });
}

bool FieldSelector::has_remote_terms() const {
  return std::ranges::any_of(
      terms_, [](const Term& term) { return term.field != kName && term.field != kNamespace; });
}

bool FieldSelector::names_namespace() const {
  return std::ranges::find(terms_, kNamespace, &Term::field) != terms_.end();
}

std::optional<std::string> FieldSelector::required_name() const {
  return required(kName);
}

std::optional<std::string> FieldSelector::required_namespace() const {
  return required(kNamespace);
}

std::optional<std::string> FieldSelector::required(std::string_view field) const {
  for (const Term& term : terms_)
    if (term.field == field && term.is_equal) return term.value;
  return std::nullopt;
}

}  // namespace hangar::kube
