#include "gateway/upstream.h"

#include "base/result.h"
#include "base/text.h"
#include "gateway/documents.h"
#include "gateway/reply.h"
#include "http/client.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/line_splitter.h"
#include "kube/object_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::gateway {

using Source = Reply::Source;

namespace {

// Headers that describe the answer; all others concern only the connection between the server and
// the host.
http::Headers worth_passing_on(const http::Headers& headers) {
  constexpr std::array<std::string_view, 4> kNames = {"content-type", "warning", "retry-after",
                                                      "audit-id"};
  http::Headers out;
  for (const auto& [name, value] : headers) {
    std::string lower = to_lower(name);
    if (std::ranges::find(kNames, lower) != kNames.end()) out.emplace_back(std::move(lower), value);
  }
  return out;
}

bool is_silent_bookmark(std::string_view line) {
  return line.starts_with(R"({"type":"BOOKMARK")") && !line.contains("k8s.io/initial-events-end");
}

void give_line(Reply& reply, std::string line) {
  if (is_silent_bookmark(line)) {
    reply.bookmark(std::move(line));
  } else {
    reply.piece(std::move(line));
  }
}

io::Task<Result<>> pass_whole(const kube::Client& client, Forward forward, Reply& reply) {
  forward.request.on_progress = [&reply](std::uint64_t bytes) { reply.progress(bytes); };
  Result<http::Response> answered =
      co_await client.send(std::move(forward.request), reply.stop_token());
  if (forward.on_answer) {
    if (answered) {
      forward.on_answer(answered->status, answered->body);
    } else {
      forward.on_answer(/*status=*/0, {});
    }
  }
  http::Response response = HANGAR_CO_TRY(std::move(answered));
  reply.head(response.status, worth_passing_on(response.headers), Source::Upstream);
  if (!response.body.empty()) reply.piece(std::move(response.body));
  co_return Result<>();
}

io::Task<Result<>> pass_stream(const kube::Client& client, kube::RawRequest request, bool in_lines,
                               Reply& reply) {
  kube::LineSplitter lines(limits::kObjectTextBytesMax);
  const Result<> closed = fail(ErrorKind::Cancelled, "the caller has gone");
  http::Client::StreamHandler handler{
      .on_headers = [&](int status, const http::Headers& headers) -> Result<> {
        in_lines = in_lines && status == 200;  // A Status is not a line.
        reply.head(status, worth_passing_on(headers), Source::Upstream);
        return reply.is_open() ? Result<>() : closed;
      },
      .on_bytes = [&](std::string_view bytes) -> Result<> {
        if (!in_lines) {
          reply.piece(std::string(bytes));
        } else {
          HANGAR_TRY(lines.feed(bytes, [&reply](std::string_view line) -> Result<> {
            give_line(reply, std::string(line) + '\n');
            return {};
          }));
          // A namespace may have hundreds of such watches, and one object's line in all of them.
          reply.progress(lines.held_bytes());
        }
        return reply.is_open() ? Result<>() : closed;
      }};
  (void)HANGAR_CO_TRY(
      co_await client.stream(std::move(request), std::move(handler), reply.stop_token()));
  co_return Result<>();
}

}  // namespace

io::Task<void> pass_on(kube::Client client, Forward forward, std::shared_ptr<Reply> reply) {
  const bool is_write = forward.is_write;
  Result<> passed;
  if (forward.body == Forward::Body::Whole) {
    passed = co_await pass_whole(client, std::move(forward), *reply);
  } else {
    const bool in_lines = forward.body == Forward::Body::Lines;
    passed = co_await pass_stream(client, std::move(forward.request), in_lines, *reply);
  }
  if (!passed && !reply->has_head()) {
    reply->refuse(no_answer(passed.error(), is_write), Source::Upstream);
  }
  reply->end();
}

}  // namespace hangar::gateway
