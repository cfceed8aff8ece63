// Label and field selectors as the API server reads and evaluates them.
#pragma once

#include "base/result.h"
#include "kube/labels.h"
#include "kube/object.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube {

// k8s.io/apimachinery/pkg/labels: "a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1". Immutable.
class LabelSelector {
 public:
  // Selects everything.
  LabelSelector() = default;
  // InvalidInput for text that the API server refuses, too.
  [[nodiscard]] static Result<LabelSelector> parse(std::string_view text);

  // The text that was parsed.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool selects_all() const { return requirements_.empty(); }
  [[nodiscard]] std::size_t requirement_count() const { return requirements_.size(); }
  [[nodiscard]] bool matches(const Labels& labels) const;

 private:
  enum class Operator : std::uint8_t { Exists, DoesNotExist, In, NotIn, Greater, Less };
  struct Requirement {
    std::string key;
    Operator op = Operator::Exists;
    std::vector<std::string> values;  // Sorted. Greater and Less: one integer.
  };
  class Parser;

  [[nodiscard]] static bool holds(const Requirement& requirement, const Labels& labels);

  std::string text_;
  std::vector<Requirement> requirements_;
};

// k8s.io/apimachinery/pkg/fields: "metadata.name=x,status.phase!=Running", with '\' before ',', '='
// and '\' in a value. Immutable.
class FieldSelector {
 public:
  FieldSelector() = default;
  [[nodiscard]] static Result<FieldSelector> parse(std::string_view text);

  // The text that was parsed.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::size_t term_count() const { return terms_.size(); }
  // Judged by the terms on metadata.name and metadata.namespace; other terms are ignored.
  [[nodiscard]] bool matches(const ObjectKey& key) const;
  // True when there are other terms, which only the server evaluates.
  [[nodiscard]] bool has_remote_terms() const;

  // True when a term is on metadata.namespace.
  [[nodiscard]] bool names_namespace() const;
  // The value that metadata.name (or metadata.namespace) must have, if the terms require one. Where
  // terms contradict each other, the value that the API server authorises.
  [[nodiscard]] std::optional<std::string> required_name() const;
  [[nodiscard]] std::optional<std::string> required_namespace() const;

 private:
  struct Term {
    std::string field;
    bool is_equal = true;
    std::string value;
  };
  [[nodiscard]] static std::vector<std::string_view> terms_in_order(std::string_view text);
  [[nodiscard]] static Result<Term> parse_term(std::string_view term);
  [[nodiscard]] std::optional<std::string> required(std::string_view field) const;

  std::string text_;
  std::vector<Term> terms_;
};

}  // namespace hangar::kube
