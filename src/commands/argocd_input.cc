#include "commands/argocd_input.h"

#include "base/invalid.h"
#include "base/result.h"
#include "json/value.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

// A list is filled up to the index, so a short path must not create a large list.
constexpr std::size_t kInputIndexMax = 10'000;
// Less than the depth that documents may have.
constexpr std::size_t kInputDepthMax = 64;

struct InputStep {
  std::string name;
  bool is_name = false;  // Also if it looks like an index.
};

Result<std::vector<InputStep>> input_steps(std::string_view path) {
  if (path.empty()) return invalid("path cannot be empty");
  std::vector<InputStep> steps(1);
  bool is_at_begin = true;
  for (std::size_t at = 0; at < path.size(); ++at) {
    InputStep& step = steps.back();
    const char letter = path[at];
    if (letter == '.') {
      steps.emplace_back();
      is_at_begin = true;
      continue;
    }
    if (letter == ':' && is_at_begin) {
      step.is_name = true;
    } else if (letter == '\\' && at + 1 < path.size()) {
      step.name += path[++at];
    } else if (std::string_view("|#@*?").contains(letter)) {
      return invalid(fmt::format("a path cannot contain '{}'", letter));
    } else {
      step.name += letter;
    }
    is_at_begin = false;
  }
  if (steps.size() > kInputDepthMax) {
    return invalid(fmt::format("the path has {} steps, at most {} are possible", steps.size(),
                               kInputDepthMax));
  }
  return steps;
}

// The index that a step means in a list of that size; nothing if it is a name.
std::optional<std::size_t> index_in(const InputStep& step, std::size_t size) {
  if (step.is_name || step.name.empty()) return std::nullopt;
  if (step.name == "-1") return size;
  std::size_t index = 0;
  const char* const end = step.name.data() + step.name.size();
  const auto [stopped, error] = std::from_chars(step.name.data(), end, index);
  if (stopped != end || error == std::errc::invalid_argument) return std::nullopt;
  return error == std::errc() ? index : kInputIndexMax + 1;
}

// The value that a step leads to, which is created if necessary.
Result<json::Value*> step_into(json::Value& value, const InputStep& step) {
  if (!value.is_object() && !value.is_array()) {
    if (index_in(step, 0)) {
      value = json::Array();
    } else {
      value = json::Object();
    }
  }
  if (value.is_object()) return &value.as_object()[step.name];
  json::Array& list = value.as_array();
  const std::optional<std::size_t> index = index_in(step, list.size());
  if (!index) return invalid(fmt::format("\"{}\" is not an index of a list", step.name));
  if (*index > kInputIndexMax) {
    return invalid(fmt::format("the index {} is larger than {}", step.name, kInputIndexMax));
  }
  if (*index >= list.size()) list.resize(*index + 1);
  return &list[*index];
}

}  // namespace

// NOLINTNEXTLINE(misc-no-recursion): as deep as the document, which is limited.
void merge_input(json::Value& into, const json::Value& over) {
  if (!into.is_object() || !over.is_object()) {
    into = over;
    return;
  }
  for (const auto& member : over.get_object())
    merge_input(into.as_object()[member.key()], member.value());
}

Result<> set_input(json::Value& input, std::string_view path, json::Value value) {
  json::Value* at = &input;
  for (const InputStep& step : HANGAR_TRY(input_steps(path)))
    at = HANGAR_TRY(step_into(*at, step));
  *at = std::move(value);
  return {};
}

}  // namespace hangar::commands
