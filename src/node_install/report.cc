#include "node_install/report.h"

#include "base/result.h"
#include "json/value.h"
#include "node_install/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

namespace hangar::node_install {

void Report::say(std::string_view event, std::string_view message,
                 std::initializer_list<Field> fields) {
  std::string line;
  if (format_ == Format::Json) {
    json::Object object{{"event", event}, {"message", message}};
    for (const auto& [name, value] : fields)
      object[name] = value;
    line = json::dump(object);
  } else {
    line = message;
    for (const auto& [name, value] : fields)
      line += fmt::format(" {}={}", name, value);
  }
  fmt::print(out_, "{}\n", line);
  std::fflush(out_);
}

void Report::fail(const Error& error) {
  if (format_ == Format::Json) {
    say("failed", error.message(), {{"reason", error.reason()}});
    return;
  }
  fmt::print(stderr, "hangar-node: {}\n", error.message());
}

void leave_last_words(const Error& error) {
  // The kubelet creates it for every container, even if the image has no /dev.
  const Descriptor file(::open("/dev/termination-log", O_WRONLY | O_TRUNC | O_CLOEXEC));
  const std::string& words = error.message();
  if (!file.is_open()) return;
  // If that fails, no channel is left to report it.
  [[maybe_unused]] const ssize_t written = ::write(file.value(), words.data(), words.size());
}

}  // namespace hangar::node_install
