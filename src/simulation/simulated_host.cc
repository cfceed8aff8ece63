#include "simulation/simulated_host.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/virtual_time.h"
#include "kube/auth/credentials.h"
#include "kube/auth/kubeconfig.h"
#include "kube/client.h"
#include "kube/fence.h"
#include "reconcile/leader_elector.h"
#include "simulation/node_pool.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::simulation {

namespace {

kube::Login login_of(const std::string& name) {
  return {.source = "the simulation",
          .cluster = {.server = "https://cluster.simulated:6443"},
          .user = {.token = name},
          .namespace_ = "kube-system"};
}

std::shared_ptr<kube::Credentials> credentials_of(io::Loop& loop, const std::string& name) {
  return std::make_shared<kube::Credentials>(loop, login_of(name), Log());
}

}  // namespace

SimulatedHost::Lease::Lease(SimulatedHost& host, const std::string& name,
                            std::shared_ptr<kube::Fence> fence)
    : credentials(credentials_of(loop, name)),
      client(loop, http, credentials, metrics, Log(), {.has_own_connections = true}),
      elector(loop, client, std::move(fence), metrics, host.log_.named("lease"),
              {.namespace_ = "kube-system", .name = "hangar", .election = {.identity = name}},
              {.on_started =
                   [&host] {
                     host.main_.loop.post([&host] {
                       if (host.is_ending_ || std::exchange(host.is_working_, true)) return;
                       host.main_.widgets.start();
                       host.main_.node_controller.start();
                     });
                   },
               .on_stopped = [&host] { host.has_lost_ = !host.is_releasing_; }}) {}

SimulatedHost::Main::Main(SimulatedHost& host, const std::string& name,
                          std::shared_ptr<kube::Fence> fence)
    : workers(loop, 2),
      readers(loop, 1),
      http(loop),
      credentials(credentials_of(loop, name)),
      client(loop, http, credentials, metrics, host.log_.named("kube"),
             {.fence = std::move(fence), .readers = &readers}),
      watch_client(loop, http, credentials, metrics, host.log_.named("kube"),
                   {.has_own_connections = true, .readers = &readers}),
      discovery(client),
      cache(loop, watch_client, metrics, host.log_.named("kube")),
      acting(client),
      events(loop, client, host.log_.named("events"), "hangar", name),
      turnstile(loop, 4),
      platform{.loop = loop,
               .workers = workers,
               .client = client,
               .cache = cache,
               .discovery = discovery,
               .acting = acting,
               .events = events,
               .turnstile = turnstile,
               .metrics = metrics,
               .log = host.log_.named("widgets")},
      gateway(std::in_place, gateway::Gateway::Parts{.loop = loop,
                                                     .client = client,
                                                     .cache = cache,
                                                     .discovery = discovery,
                                                     .metrics = metrics,
                                                     .log = host.log_.named("gateway")}),
      widgets(platform),
      node_controller(platform, node_options()) {}

SimulatedHost::SimulatedHost(io::VirtualTime::Process& process, std::string name, Fence fence,
                             Log log)
    : name_(std::move(name)),
      log_(std::move(log)),
      shared_fence_(std::make_shared<kube::Fence>()),
      inside_(std::make_unique<io::VirtualTime::Inside>(process)),
      lease_(*this, name_, shared_fence_),
      main_(*this, name_, fence == Fence::Kept ? shared_fence_ : nullptr) {
  inside_.reset();
}

SimulatedHost::~SimulatedHost() {
  HANGAR_ASSERT(has_ended(), "a host ends before it is destroyed");
}

void SimulatedHost::set_on_turn(std::function<void(Duration took)> on_turn) {
  for (io::Loop* const loop : {&lease_.loop, &main_.loop}) {
    loop->observe({.on_turn = [on_turn](Duration took, std::string_view) { on_turn(took); }});
  }
}

void SimulatedHost::start() {
  lease_.loop.post([this] { lease_.elector.start(); });
}

void SimulatedHost::stop() {
  if (std::exchange(is_ending_, true)) return;
  main_.loop.post([this] { main_.loop.spawn(end()); });
}

io::Task<void> SimulatedHost::end() {
  if (is_working_) {
    co_await main_.node_controller.stop();
    co_await main_.widgets.stop();
  }
  co_await main_.events.stop();
  main_.cache.stop();
  // The product's process ends with whatever still runs in it. Here all of it has to end first.
  main_.gateway.reset();
  lease_.loop.post([this] {
    is_releasing_ = true;
    lease_.loop.spawn([](SimulatedHost& host) -> io::Task<void> {
      co_await host.lease_.elector.stop();
      host.has_stopped_ = true;
    }(*this));
  });
}

bool SimulatedHost::has_ended() const {
  return has_stopped_ && main_.loop.spawned_count() == 0 && lease_.loop.spawned_count() == 0;
}

std::string SimulatedHost::unfinished() const {
  return fmt::format("{}, {} tasks, {} tasks of the election",
                     has_stopped_ ? "its parts have stopped" : "its parts have not stopped",
                     main_.loop.spawned_count(), lease_.loop.spawned_count());
}

}  // namespace hangar::simulation
