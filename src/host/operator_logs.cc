#include "host/operator_logs.h"

#include "host/operator_parts.h"
#include "kube/object.h"
#include "operators/operator_log.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace hangar::host {

namespace {

// How soon a person sees a new line.
constexpr std::chrono::milliseconds kFollowInterval{200};

std::string_view last_lines(std::string_view text, std::size_t count) {
  std::size_t begin = text.size();
  for (std::size_t line = 0; line < count && begin > 0; ++line) {
    const std::size_t before = text.rfind('\n', begin >= 2 ? begin - 2 : 0);
    begin = before == std::string_view::npos || begin < 2 ? 0 : before + 1;
  }
  return text.substr(begin);
}

// What `now` has beyond `before`, although lines leave at its beginning.
std::string_view news(std::string_view before, std::string_view now) {
  if (before.empty()) return now;
  const std::size_t last_line = before.rfind('\n', before.size() - 2);
  const std::string_view tail = before.substr(last_line == std::string_view::npos ? 0 : last_line);
  if (now.starts_with(before)) return now.substr(before.size());
  const std::size_t found = now.rfind(tail);
  return found == std::string_view::npos ? now : now.substr(found + tail.size());
}

}  // namespace

Result<> print_operator_logs(const Config& config, OperatorLogsOptions options,
                             const std::function<bool(std::string_view)>& print) {
  const Config resolved = HANGAR_TRY(resolve(config));
  const operators::OperatorLogs logs(operator_log_directory(resolved));
  const kube::ObjectKey key{.namespace_ = std::move(options.namespace_),
                            .name = std::move(options.name)};
  if (key.name.find('/') != std::string::npos || key.namespace_.find('/') != std::string::npos) {
    return fail(ErrorKind::InvalidInput, "a name has no slashes; the namespace goes to -n");
  }
  std::string text = HANGAR_TRY(logs.read(key));
  if (!print(options.tail_lines == 0 ? text : last_lines(text, options.tail_lines))) return {};
  while (options.follow) {
    std::this_thread::sleep_for(kFollowInterval);
    std::string now = HANGAR_TRY(logs.read(key));
    const std::string_view added = news(text, now);
    if (!added.empty() && !print(added)) return {};
    text = std::move(now);
  }
  return {};
}

}  // namespace hangar::host
