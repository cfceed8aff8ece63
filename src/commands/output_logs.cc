#include "commands/output_logs.h"

#include "base/dns_name.h"
#include "host/config.h"
#include "host/operator_parts.h"
#include "kube/object.h"
#include "output/log_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace hangar::commands {

namespace {

// How often to look for new lines.
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

Result<> print_output_logs(const host::Config& config, LogsOptions options,
                           const std::function<bool(std::string_view)>& print) {
  const host::Config resolved = HANGAR_TRY(host::resolve(config));
  const output::LogFiles logs(host::log_directory(resolved));
  const kube::ObjectKey key{.namespace_ = std::move(options.namespace_),
                            .name = std::move(options.name)};
  if (key.name.find('/') != std::string::npos || key.namespace_.find('/') != std::string::npos) {
    return fail(ErrorKind::InvalidInput, "a name has no slashes; the namespace goes to -n");
  }
  if (!options.resource.empty() && !is_dns_subdomain(options.resource)) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is not the name of an Airway such as backends.examples.com",
                            options.resource));
  }
  const auto read = [&]() -> Result<std::string> {
    Result<std::string> kept =
        key.name.empty() ? logs.read_all(options.resource) : logs.read(key, options.resource);
    const bool is_silent = !kept && kept.error().kind() == ErrorKind::NotFound;
    return is_silent && options.is_known ? std::string() : std::move(kept);
  };
  std::string text = HANGAR_TRY(read());
  if (!print(options.tail_lines ? last_lines(text, *options.tail_lines) : text)) return {};
  while (options.follow) {
    std::this_thread::sleep_for(kFollowInterval);
    std::string now = HANGAR_TRY(read());
    const std::string added = output::LogFiles::added(text, now);
    if (!added.empty() && !print(added)) return {};
    text = std::move(now);
  }
  return {};
}

}  // namespace hangar::commands
