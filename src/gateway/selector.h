// Label and field selectors as the API server reads and evaluates them.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::gateway {

// k8s.io/apimachinery/pkg/labels: "a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1". Immutable.
class LabelSelector {
 public:
  // Selects everything.
  LabelSelector() = default;
  // InvalidInput for what the API server would refuse too.
  [[nodiscard]] static Result<LabelSelector> parse(std::string_view text);

  // What was parsed.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool selects_all() const { return requirements_.empty(); }
  // `labels`: metadata.labels; null when there are none.
  [[nodiscard]] bool matches(const json::Object* labels) const;

 private:
  enum class Operator : std::uint8_t { Exists, DoesNotExist, In, NotIn, Greater, Less };
  struct Requirement {
    std::string key;
    Operator op = Operator::Exists;
    std::vector<std::string> values;  // Greater and Less: one integer.
  };
  class Parser;

  [[nodiscard]] static bool holds(const Requirement& requirement, const json::Object* labels);

  std::string text_;
  std::vector<Requirement> requirements_;
};

// k8s.io/apimachinery/pkg/fields: "metadata.name=x,status.phase!=Running", with '\' before ',', '='
// and '\' in a value. Immutable.
class FieldSelector {
 public:
  FieldSelector() = default;
  [[nodiscard]] static Result<FieldSelector> parse(std::string_view text);

  // What was parsed.
  [[nodiscard]] const std::string& text() const { return text_; }
  // By the terms on metadata.name and metadata.namespace; the others are not looked at.
  [[nodiscard]] bool matches(const kube::ObjectKey& key) const;
  // What the others say, in a form that is the same for the same terms; empty when there are none.
  [[nodiscard]] std::string remote_terms() const;

  // The value that metadata.name (or metadata.namespace) must have, when there is one.
  [[nodiscard]] std::optional<std::string> required_name() const;
  [[nodiscard]] std::optional<std::string> required_namespace() const;

 private:
  struct Term {
    std::string field;
    bool is_equal = true;
    std::string value;
    auto operator<=>(const Term&) const = default;
  };
  [[nodiscard]] std::optional<std::string> required(std::string_view field) const;

  std::string text_;
  std::vector<Term> terms_;
};

}  // namespace hangar::gateway
