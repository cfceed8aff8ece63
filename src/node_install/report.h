// Reports the progress of hangar-node: one line for each step, for people or as JSON for programs.
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
  // `out` has to stay open. Every line is flushed, because after a crash the last one matters most.
  Report(Format format, std::FILE* out) : format_(format), out_(out) {}

  using Field = std::pair<std::string_view, std::string_view>;
  // `event` is for programs, `message` for people; fields are part of both.
  void say(std::string_view event, std::string_view message,
           std::initializer_list<Field> fields = {});
  // Prints the error for people to stderr, or for programs as an event ("failed", with reason).
  void fail(const Error& error);

 private:
  Format format_;
  std::FILE* out_;
};

// Writes why a program failed to the termination log, where Kubernetes reads a container's last
// message. Outside of Kubernetes the file does not exist, and nothing happens.
void leave_last_words(const Error& error);

}  // namespace hangar::node_install
