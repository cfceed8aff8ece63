// What hangar-node says while it works: one line a step, for people or as JSON for programs.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace hangar::node_install {

class Report {
 public:
  enum class Format : std::uint8_t { Lines, Json };
  // `out` has to stay open. Every line is flushed: whoever reads a log wants the last one.
  Report(Format format, std::FILE* out) : format_(format), out_(out) {}

  using Field = std::pair<std::string_view, std::string_view>;
  // `event` is for programs, `message` for people; fields are part of both.
  void say(std::string_view event, std::string_view message,
           std::initializer_list<Field> fields = {});
  // On stderr for people, as an event ("failed", with reason) for programs; and there only.
  void fail(const Error& error);

 private:
  Format format_;
  std::FILE* out_;
};

// Puts why a program failed where Kubernetes takes the last words of a container from. Elsewhere
// there is no such file, and nothing happens.
void leave_last_words(const Error& error);

}  // namespace hangar::node_install
