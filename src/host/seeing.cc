#include "host/seeing.h"

#include "admission/certificate_keeper.h"
#include "admission/webhooks.h"
#include "base/result.h"
#include "base/time.h"
#include "gateway/gateway.h"
#include "gateway/read_scope.h"
#include "host/config.h"
#include "host/recording.h"
#include "http/listen_address.h"
#include "http/server.h"
#include "io/event.h"
#include "io/priority.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/core_resources.h"
#include "operators/fleet.h"
#include "operators/life.h"
#include "operators/operator.h"
#include "operators/operator_controller.h"
#include "operators/running_operator.h"
#include "recorder/record.h"
#include "seeing/cost.h"
#include "seeing/published.h"
#include "seeing/top.h"
#include "seeing/uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::host {

namespace {

// How often to read the authorities of users' certificates, which change once in years.
constexpr std::chrono::seconds kClientsEvery{60};
// Time to the next attempt after a failed read or write.
constexpr std::chrono::seconds kAgain{10};
// How long to wait for the main loop, whose turns take milliseconds.
constexpr std::chrono::seconds kPresentMax{2};
// How often to write the address again, in case the ConfigMap was deleted.
constexpr std::chrono::minutes kPublishEvery{5};

std::vector<std::string> server_names(const Config::Seeing& options) {
  std::vector<std::string> names = options.names;
  names.emplace_back(seeing::kServerName);
  if (!options.url.empty()) {
    const Result<admission::Reach> reach = admission::parse_url(options.url);
    if (reach) std::ranges::move(reach->server_names(), std::back_inserter(names));
  }
  return names;
}

}  // namespace

std::vector<Setting> seeing_settings() {
  return {
      {.name = "records-bind-address",
       .help = "address that serves the records over HTTPS to users of the cluster, limited by "
               "their own rights, such as :9444 (default: none)",
       .type = "ADDRESS:PORT",
       .part = Part::Seeing,
       .set = [](Config& config, std::string_view text) -> Result<> {
         HANGAR_TRY(http::parse_listen_address(text));
         config.seeing.bind_address = std::string(text);
         return {};
       }},
      {.name = "records-url",
       .help = "URL at which users reach the records, such as https://hangar.example.com:9444 "
               "(default: a port-forward to the pod)",
       .type = "URL",
       .part = Part::Seeing,
       .set = [](Config& config, std::string_view text) -> Result<> {
         HANGAR_TRY(admission::parse_url(text));
         config.seeing.url = std::string(text);
         return {};
       }},
      {.name = "records-names",
       .help = "comma-separated additional names and addresses in the certificate of the records",
       .type = "NAMES",
       .part = Part::Seeing,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.seeing.names = list_of(text);
         return {};
       }},
      {.name = "records-secret",
       .help = "Secret in the host's namespace with that certificate; hangar creates and renews it "
               "unless someone else has filled it (default hangar-records)",
       .type = "NAME",
       .part = Part::Seeing,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.seeing.secret = std::string(text);
         return {};
       }},
  };
}

Result<> check_seeing(const Config& config) {
  if (config.seeing.bind_address.empty()) return {};
  if (config.recorder_bytes == 0) {
    return fail(ErrorKind::InvalidInput,
                "records-bind-address needs recorder-bytes above 0: without records there is "
                "nothing to show");
  }
  return {};
}

std::vector<seeing::PresentGuest> present_guests(const operators::OperatorController& operators) {
  std::vector<seeing::PresentGuest> guests;
  guests.reserve(operators.fleet().size());
  operators.fleet().visit([&guests](const operators::RunningOperator& one) {
    const std::uint64_t starts = one.life().start_count();
    guests.push_back({.key = {.contract = recorder::Contract::Operator,
                              .namespace_ = one.key().namespace_,
                              .name = one.key().name},
                      .phase = std::string(operators::name_of(one.life().phase())),
                      .memory_bytes = one.resident_bytes(),
                      .disk_bytes = one.disk_bytes(),
                      .restarts = starts > 0 ? starts - 1 : 0});
  });
  return guests;
}

std::vector<seeing::Right> open_watches(const gateway::Gateway& gateway, std::string_view user) {
  std::vector<seeing::Right> watches;
  for (gateway::Attributes& attributes : gateway.watches_of(user)) {
    watches.push_back({.verb = recorder::Verb::Watch,
                       .group = std::move(attributes.group),
                       .resource = std::move(attributes.resource),
                       .namespace_ = std::move(attributes.namespace_)});
  }
  return watches;
}

std::unique_ptr<Seeing> Seeing::make(const Config& config, Parts parts) {
  if (config.seeing.bind_address.empty()) return nullptr;
  return std::make_unique<Seeing>(config, std::move(parts));
}

Seeing::Seeing(const Config& config, Parts parts)
    : parts_(std::move(parts)),
      options_(config.seeing),
      log_(parts_.log.named("seeing")),
      http_(loop_),
      credentials_(
          std::make_shared<kube::Credentials>(loop_, parts_.login, parts_.log.named("kube"))),
      client_(loop_, http_, credentials_, metrics_, parts_.log.named("kube")),
      leader_client_(loop_, http_, credentials_, metrics_, parts_.log.named("kube"),
                     {.fence = parts_.fence}),
      server_(loop_, client_, parts_.metrics, log_,
              {.directory = recorder_directory(config),
               .operators = operators::operator_resource(),
               .present = [this] { return ask_main(parts_.present); },
               .guest_resources = [this] { return ask_main(parts_.guest_resources); },
               .cost = [this] { return ask_main(parts_.cost); },
               .watches =
                   [this](std::string user) {
                     return ask_main<std::vector<seeing::Right>>(
                         [this, user = std::move(user)] { return parts_.watches(user); });
                   }}),
      certificate_keeper_(loop_, client_, log_,
                          {.namespace_ = parts_.namespace_,
                           .secret = options_.secret,
                           .names = server_names(options_)},
                          [this](const admission::ServerCertificate& one) { on_certificate(one); }),
      published_{.url = options_.url, .pod = config.pod},
      changed_(loop_),
      idle_(loop_) {
  const Result<http::ListenAddress> where = http::parse_listen_address(options_.bind_address);
  if (where) published_.port = where->port;
  loop_.observe({.on_exception = [this](const Error& error, std::string_view) {
    log_.error("a task failed with an exception", {{"error", error.message()}});
  }});
}

Seeing::~Seeing() {
  loop_.stop();
}

void Seeing::start() {
  thread_ = std::jthread([this] {
    io::give_way();
    certificate_keeper_.start();
    loop_.spawn(follow_clients());
    loop_.spawn(publish());
    loop_.run();
  });
}

void Seeing::lead() {
  loop_.post([this] {
    is_leading_ = true;
    server_.lead();
    changed_.notify_all();
  });
}

io::Task<void> Seeing::stop() {
  const io::OneShot<bool> ended(parts_.main);
  loop_.post(
      [this, given = io::OneShot<bool>(ended)]() mutable { loop_.spawn(end(std::move(given))); });
  co_await ended.wait();
}

io::Task<void> Seeing::end(io::OneShot<bool> ended) {
  stop_.request_stop();
  co_await server_.stop();
  co_await certificate_keeper_.stop();
  while (under_way_ > 0)
    (void)co_await idle_.wait({});
  // The last reference moves to the main loop, since only one thread may use a OneShot.
  parts_.main.post([done = std::move(ended)] { done.set(true); });
  loop_.stop();
}

void Seeing::on_certificate(const admission::ServerCertificate& certificate) {
  certificate_ = certificate;
  published_.authority_pem = certificate.authorities_pem;
  listen();
  changed_.notify_all();
}

void Seeing::listen() {
  if (!certificate_) return;
  http::ServerOptions::Tls tls = certificate_->tls;
  tls.client_ca_pem = client_authorities_pem_;
  tls.client_is_optional = true;  // Users without a certificate present a token.
  if (const Result<> listening = server_.listen(options_.bind_address, std::move(tls));
      !listening) {
    log_.error("records are not shown", {{"error", listening.error().message()}});
  }
}

// The guests belong to the main loop: the question runs there, and the answer is posted back.
template <class Told>
io::Task<Result<Told>> Seeing::ask_main(std::function<Told()> question) {
  const io::OneShot<Result<Told>> told(loop_);
  const io::Loop::Timer limit = loop_.after(kPresentMax, [told] {
    told.set(fail(ErrorKind::Unavailable, "the host is busy: try again"));
  });
  // The last reference moves back to this loop, since only one thread may use a OneShot.
  parts_.main.post(
      [this, question = std::move(question), given = io::OneShot<Result<Told>>(told)]() mutable {
        loop_.post([done = std::move(given), answer = question()]() mutable {
          done.set(std::move(answer));
        });
      });
  co_return co_await told.wait();
}

// The API server publishes the authorities of its clients' certificates for servers like this one.
io::Task<void> Seeing::follow_clients() {
  ++under_way_;
  bool was_told = false;
  while (!stop_.stop_requested()) {
    const Result<json::Value> found = co_await client_.get(
        kube::config_map_resource(),
        {.namespace_ = "kube-system", .name = "extension-apiserver-authentication"},
        stop_.get_token());
    if (found) {
      std::string authorities(json::string_at(*found, {"data", "client-ca-file"}));
      if (authorities != client_authorities_pem_) {
        client_authorities_pem_ = std::move(authorities);
        listen();
      }
    } else if (!std::exchange(was_told, true) && !stop_.stop_requested()) {
      log_.warning("users cannot show client certificates, only tokens",
                   {{"error", found.error().message()}});
    }
    const Duration pause = found ? Duration(kClientsEvery) : Duration(kAgain);
    if (!co_await loop_.sleep(pause, stop_.get_token())) break;
  }
  --under_way_;
  idle_.notify_all();
}

io::Task<void> Seeing::publish() {
  ++under_way_;
  std::optional<seeing::Published> written;
  Instant written_at;
  bool was_told = false;
  while (!stop_.stop_requested()) {
    if (!is_leading_ || !certificate_) {
      if (!co_await changed_.wait(stop_.get_token())) break;
      continue;
    }
    seeing::Published now = published_;
    const Instant at = io::Loop::now();
    if (written != now || at - written_at > kPublishEvery) {
      const Result<json::Value> applied = co_await leader_client_.apply(
          kube::config_map_resource(), seeing::config_map_of(now, parts_.namespace_),
          {.force = true}, stop_.get_token());
      if (applied) {
        written = std::move(now);
        written_at = at;
      } else if (!std::exchange(was_told, true) && !stop_.stop_requested()) {
        log_.warning("where records are shown is not published: commands need --host-address",
                     {{"error", applied.error().message()}});
      }
    }
    if (!co_await loop_.sleep(kAgain, stop_.get_token())) break;
  }
  --under_way_;
  idle_.notify_all();
}

}  // namespace hangar::host
