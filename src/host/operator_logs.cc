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
  const auto read = [&]() -> Result<std::string> {
    Result<std::string> kept = logs.read(key);
    const bool is_silent = !kept && kept.error().kind() == ErrorKind::NotFound;
    return is_silent && options.is_known ? std::string() : std::move(kept);
  };
  std::string text = HANGAR_TRY(read());
  if (!print(options.tail_lines ? last_lines(text, *options.tail_lines) : text)) return {};
  while (options.follow) {
    std::this_thread::sleep_for(kFollowInterval);
    std::string now = HANGAR_TRY(read());
    const std::string added = operators::OperatorLogs::added(text, now);
    if (!added.empty() && !print(added)) return {};
    text = std::move(now);
  }
  return {};
}

}  // namespace hangar::host
