#include "commands/ready.h"

#include "base/result.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/run.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::commands {

Result<> check_ready(const std::string& url) {
  constexpr std::uint64_t kAnswerBytesMax = 64 * 1024;
  constexpr std::chrono::seconds kPatience{10};
  std::string readyz = url;
  while (readyz.ends_with('/'))
    readyz.pop_back();
  readyz += "/readyz?verbose";

  io::Loop loop;
  http::Client client(loop);
  // The host is inside the cluster, so bypass any proxy: it might answer itself.
  auto transport = std::make_shared<http::Transport>();
  transport->direct = true;
  const http::Response response =
      HANGAR_TRY(io::run_to_end(loop, client.send({.url = readyz,
                                                   .transport = std::move(transport),
                                                   .connect_timeout = kPatience,
                                                   .total_timeout = kPatience,
                                                   .response_bytes_max = kAnswerBytesMax},
                                                  std::stop_token())));
  if (response.status == 200) return {};
  return fail(ErrorKind::Unavailable,
              fmt::format("{} answers {}:\n{}", readyz, response.status, response.body));
}

}  // namespace hangar::commands
