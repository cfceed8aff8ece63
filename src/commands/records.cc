#include "commands/records.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/text.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "http/client.h"
#include "io/file.h"
#include "io/program.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/core_resources.h"
#include "seeing/cost.h"
#include "seeing/find.h"
#include "seeing/messages.h"
#include "seeing/published.h"
#include "seeing/top.h"
#include "seeing/uses.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::commands {

namespace {

constexpr std::uint64_t kAnswerBytesMax = 64 * limits::kMiB;
// Longer than a host needs.
constexpr std::chrono::seconds kAnswerMax{60};
constexpr std::chrono::seconds kForwardMax{30};
// A Service may reach hosts that are not the leader, and a user may exceed the rate limit: retry.
constexpr int kTries = 8;
constexpr std::chrono::seconds kAgain{1};

class LocalRecords final : public Records {
 public:
  explicit LocalRecords(seeing::RecordsPlace place) : place_(std::move(place)) {}

  io::Task<Result<seeing::FoundTurns>> turns(seeing::TurnsQuestion question) override {
    co_return seeing::find_turns(place_, question, {});
  }
  io::Task<Result<seeing::FoundWrites>> writes(seeing::WritesQuestion question) override {
    co_return seeing::find_writes(place_.directory, question, {});
  }
  io::Task<Result<seeing::FoundTop>> top(seeing::TopQuestion question) override {
    co_return seeing::find_top(place_, question, {});
  }
  io::Task<Result<seeing::FoundUses>> uses(seeing::UsesQuestion question) override {
    co_return seeing::find_uses(place_, question, {});
  }
  io::Task<Result<seeing::FoundCost>> cost(seeing::CostQuestion /*question*/) override {
    co_return fail(ErrorKind::InvalidInput,
                   "only a running host knows the cost, and its files do not have it: ask it "
                   "without --module-cache-dir and --recorder-directory");
  }

 private:
  const seeing::RecordsPlace place_;
};

// The address of the server, and how to verify its certificate.
struct Reached {
  std::string url;
  std::string authority_pem;                    // Empty: the system's authorities.
  std::string server_name;                      // Empty: the name in the URL.
  std::unique_ptr<io::Companion> forward = {};  // Null: not needed.
};

// The beginning of a host's error message.
std::string words_of(std::string_view body) {
  constexpr std::size_t kMost = 1000;
  while (body.ends_with('\n'))
    body.remove_suffix(1);
  return printable(body.substr(0, kMost));
}

ErrorKind kind_of(int status) {
  switch (status) {
    case 400:
      return ErrorKind::InvalidInput;
    case 401:
    case 403:
      return ErrorKind::Denied;
    case 404:
      return ErrorKind::NotFound;
    default:
      return ErrorKind::Unavailable;
  }
}

class HostRecords final : public Records {
 public:
  HostRecords(host::ClusterSession& session, Reached reached)
      : session_(session), reached_(std::move(reached)) {}

  io::Task<Result<seeing::FoundTurns>> turns(seeing::TurnsQuestion question) override {
    const std::string answer =
        HANGAR_CO_TRY(co_await ask(seeing::kTurnsPath, json::dump(seeing::json_of(question))));
    co_return parsed(seeing::parse_found_turns(answer));
  }
  io::Task<Result<seeing::FoundWrites>> writes(seeing::WritesQuestion question) override {
    const std::string answer =
        HANGAR_CO_TRY(co_await ask(seeing::kWritesPath, json::dump(seeing::json_of(question))));
    co_return parsed(seeing::parse_found_writes(answer));
  }
  io::Task<Result<seeing::FoundTop>> top(seeing::TopQuestion question) override {
    const std::string answer =
        HANGAR_CO_TRY(co_await ask(seeing::kTopPath, json::dump(seeing::json_of(question))));
    co_return parsed(seeing::parse_found_top(answer));
  }
  io::Task<Result<seeing::FoundUses>> uses(seeing::UsesQuestion question) override {
    const std::string answer =
        HANGAR_CO_TRY(co_await ask(seeing::kUsesPath, json::dump(seeing::json_of(question))));
    co_return parsed(seeing::parse_found_uses(answer));
  }
  io::Task<Result<seeing::FoundCost>> cost(seeing::CostQuestion question) override {
    const std::string answer =
        HANGAR_CO_TRY(co_await ask(seeing::kCostPath, json::dump(seeing::json_of(question))));
    co_return parsed(seeing::parse_found_cost(answer));
  }
  void give_up() override { stop_.request_stop(); }

 private:
  template <class Found>
  static Result<Found> parsed(Result<Found> found) {
    if (found) return found;
    return std::unexpected(
        std::move(found).error().in("the host's answer (is it of this version?)"));
  }

  io::Task<Result<std::string>> ask(std::string_view path, std::string body) {
    Error error(ErrorKind::Unavailable, "");
    for (int tried = 0; tried < kTries; ++tried) {
      if (tried > 0) HANGAR_CO_TRY(co_await session_.loop.sleep(kAgain, stop_.get_token()));
      const http::Request request = HANGAR_CO_TRY(co_await request_for(path, body));
      const Result<http::Response> response =
          co_await session_.http.send(request, stop_.get_token());
      if (!response) co_return std::unexpected(response.error());
      if (response->status == 200) co_return response->body;
      error = Error(kind_of(response->status), words_of(response->body));
      if (response->status != 503 && response->status != 429) break;
      // A new connection may reach another host.
      transport_.reset();
    }
    co_return std::unexpected(std::move(error));
  }

  // Authenticates as with the API server: by the client certificate, or by the token.
  io::Task<Result<http::Request>> request_for(std::string_view path, std::string body) {
    const kube::Credentials::Grant grant =
        HANGAR_CO_TRY(co_await session_.credentials->grant(stop_.get_token()));
    if (!transport_ || generation_ != grant.generation) {
      generation_ = grant.generation;
      transport_ = std::make_shared<const http::Transport>(
          http::Transport{.ca_pem = reached_.authority_pem,
                          .certificate_pem = grant.transport->certificate_pem,
                          .key_pem = grant.transport->key_pem,
                          .server_name = reached_.server_name,
                          .direct = reached_.forward != nullptr});
    }
    http::Request request{.method = "POST",
                          .url = reached_.url + std::string(path),
                          .headers = {{"Content-Type", "application/json"}},
                          .body = std::move(body),
                          .transport = transport_,
                          .total_timeout = kAnswerMax,
                          .response_bytes_max = kAnswerBytesMax};
    if (transport_->certificate_pem.empty()) {
      const auto authorization = http::find_header(grant.headers, "Authorization");
      if (authorization) request.headers.emplace_back("Authorization", *authorization);
    }
    co_return request;
  }

  host::ClusterSession& session_;
  const Reached reached_;
  std::shared_ptr<const http::Transport> transport_;
  std::uint64_t generation_ = 0;
  std::stop_source stop_;
};

Result<std::unique_ptr<io::Companion>> forward(const host::Config& config,
                                               const seeing::Published& published) {
  const Result<std::filesystem::path> kubectl = io::find_program("kubectl");
  if (!kubectl) {
    return fail(ErrorKind::NotFound,
                "the host is reached through a port-forward by kubectl, which is not on PATH: "
                "install it, or say where the host is with --host-address");
  }
  const std::size_t slash = published.pod.find('/');
  io::Program program{.path = *kubectl};
  if (!config.kubeconfig.empty()) program.arguments.push_back("--kubeconfig=" + config.kubeconfig);
  if (!config.context.empty()) program.arguments.push_back("--context=" + config.context);
  program.arguments.push_back("--namespace=" + published.pod.substr(0, slash));
  program.arguments.insert(program.arguments.end(), {"port-forward", "--address=127.0.0.1",
                                                     "pod/" + published.pod.substr(slash + 1),
                                                     fmt::format(":{}", published.port)});
  return io::Companion::start(program);
}

// By the published URL, or else by a port-forward.
Result<Reached> reach(const host::Config& config, seeing::Published published) {
  if (!published.url.empty()) {
    return Reached{.url = std::move(published.url),
                   .authority_pem = std::move(published.authority_pem)};
  }
  std::unique_ptr<io::Companion> companion = HANGAR_TRY(forward(config, published));
  constexpr std::string_view kHost = "127.0.0.1:";
  const std::string line =
      HANGAR_TRY(companion->wait_for_line(fmt::format("Forwarding from {}", kHost), kForwardMax));
  return Reached{.url = fmt::format("https://{}{}", kHost, line.substr(0, line.find(' '))),
                 .authority_pem = std::move(published.authority_pem),
                 .server_name = std::string(seeing::kServerName),
                 .forward = std::move(companion)};
}

constexpr std::string_view kOtherWays =
    "--host-namespace names the host's namespace, --host-address its address, "
    "--recorder-directory local files";

Result<seeing::Published> find_published(host::ClusterSession& session,
                                         const std::string& namespace_) {
  const Result<json::Value> found = session.run(session.client.get(
      kube::config_map_resource(),
      {.namespace_ = namespace_, .name = std::string(seeing::kPublishedName)}, {}));
  if (found) return seeing::parse_config_map(*found);
  if (found.error().kind() == ErrorKind::NotFound) {
    return fail(ErrorKind::NotFound,
                fmt::format("no host in namespace {} shows its records (--records-bind-address); "
                            "{}",
                            namespace_, kOtherWays));
  }
  return fail(found.error().kind(),
              fmt::format("find the host: {}; {}", found.error().message(), kOtherWays));
}

}  // namespace

std::unique_ptr<Records> local_records(seeing::RecordsPlace place) {
  return std::make_unique<LocalRecords>(std::move(place));
}

Result<std::unique_ptr<Records>> host_records(const host::Config& config,
                                              host::ClusterSession& session,
                                              const HostPlace& place) {
  if (!session.credentials->impersonation().empty()) {
    return fail(
        ErrorKind::InvalidInput,
        "the kubeconfig impersonates another user, and the host shows records only to users "
        "who authenticate as themselves: use a context without `as`");
  }
  std::string authority;
  if (!place.authority.empty()) {
    authority = HANGAR_TRY(io::read_file(place.authority, limits::kMiB));
  }
  Reached reached;
  if (!place.address.empty()) {
    if (!place.address.starts_with("https://")) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("\"{}\" is not an address such as https://host:9444", place.address));
    }
    reached.url = place.address;
    while (reached.url.ends_with('/'))
      reached.url.pop_back();
  } else {
    seeing::Published published = HANGAR_TRY(find_published(session, place.namespace_));
    reached = HANGAR_TRY(reach(config, std::move(published)));
  }
  if (!authority.empty()) reached.authority_pem = std::move(authority);
  return std::make_unique<HostRecords>(session, std::move(reached));
}

Result<std::unique_ptr<Records>> open_records(const host::Config& config,
                                              host::ClusterSession& session,
                                              const RecordsAccess& access) {
  if (access.local) return local_records(*access.local);
  return host_records(config, session, access.host);
}

}  // namespace hangar::commands
