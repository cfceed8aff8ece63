#include "simulation/scenario.h"

#include "base/log.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/virtual_time.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"
#include "simulation/api_server.h"
#include "simulation/guest.h"
#include "simulation/network.h"
#include "simulation/node_pool.h"
#include "simulation/simulated_host.h"
#include "simulation/widgets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::simulation {

namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Clocks = io::VirtualTime::Process::Clocks;
using Kind = Step::Kind;

constexpr std::size_t kHosts = 2;
constexpr std::array<std::string_view, 2> kNamespaces = {"a", "b"};
constexpr std::size_t kSteps = 60;
constexpr std::size_t kNodeSteps = 20;
constexpr minutes kActive{8};
// After the last step: what was wrong has ended by then, and the longest back-off is over.
constexpr minutes kRecovery{12};
constexpr minutes kRest{2};
// A request's own time limit, and the turns around it.
constexpr seconds kRequestEnd{80};
// One turn of a loop: work is cut into slices of milliseconds.
constexpr seconds kTurnMax{1};
constexpr minutes kStopMax{5};
// limits::kShutdownMax for the features, then Events and the release of the Lease. A pod has 30 s.
constexpr seconds kTerminationMax{25};
// Much more than the objects of a scenario take.
constexpr std::size_t kCacheBytesMax = 1024UZ * 1024;
constexpr std::size_t kRequestsOpenMax = 200;

constexpr std::string_view kLeases = "leases.coordination.k8s.io";

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 18> kNames = {
      "SetWidget",   "DeleteWidget", "DeleteChild", "EditChild", "Stop",      "Suspend",
      "Kill",        "Terminate",    "JumpClock",   "CutOff",    "Slow",      "Errors",
      "SilentNames", "Compact",      "WishNode",    "TouchNode", "DeleteJob", "ReplaceNode"};
  return kNames.at(static_cast<std::size_t>(kind));
}

// Writes what happens, with the time of the simulation.
class Trace {
 public:
  Trace(io::VirtualTime& time, std::FILE* file) : time_(time), began_(time.world()), file_(file) {}

  [[nodiscard]] bool is_on() const { return file_ != nullptr; }
  // The log of one host.
  [[nodiscard]] Log log(const std::string& host) {
    if (!is_on()) return {};
    sinks_.push_back(std::make_unique<Sink>(*this, host));
    return {*sinks_.back(), ""};
  }
  void note(std::string_view who, std::string_view what) {
    if (!is_on()) return;
    fmt::print(file_, "{:>12} {} {}\n", to_go_duration(time_.world() - began_), who, what);
  }

 private:
  class Sink final : public LogSink {
   public:
    Sink(Trace& trace, std::string host) : trace_(trace), host_(std::move(host)) {}
    void write(LogLevel /*level*/, std::string_view component, std::string_view message,
               std::span<const LogField> fields) override {
      std::string text = fmt::format("{}: {}", component, message);
      for (const LogField& field : fields) {
        std::visit([&](const auto& value) { text += fmt::format(" {}={}", field.key, value); },
                   field.value);
      }
      trace_.note(host_, text);
    }

   private:
    Trace& trace_;
    const std::string host_;
  };

  io::VirtualTime& time_;
  const Instant began_;
  std::FILE* const file_;
  std::vector<std::unique_ptr<Sink>> sinks_;
};

class World {
 public:
  World(const Scenario& scenario, Omissions omissions, std::FILE* trace)
      : scenario_(scenario),
        omissions_(omissions),
        time_({.seed = scenario.seed}),
        server_(scenario.seed),
        network_(time_, server_, omissions.lookups),
        node_pool_(time_, server_, [this](std::string what) { violate(std::move(what)); }),
        world_(time_),
        began_(time_.world()),
        trace_(time_, trace) {
    network_.set_on_act([this](const Network::Acted& acted) { on_act(acted); });
    set_up();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() = default;

  Verdict play() {
    for (std::size_t host = 0; host < kHosts; ++host)
      begin_host(host);
    for (const Step& step : scenario_.steps)
      world_.after(step.at, [this, &step] { perform(step); });
    look_after();
    run_for(kActive + kRecovery);
    const std::uint64_t writes = write_count_;
    run_for(kRest);
    if (write_count_ != writes) {
      violate(fmt::format("rest: {} writes, although nothing changes", write_count_ - writes));
    }
    check_end();
    const Duration simulated = time_.world() - began_;
    has_ended_ = end_hosts();
    return {.violations = std::move(violations_),
            .digest = digest_,
            .requests = network_.statistics().requests,
            .faults = network_.statistics().faults,
            .handlers = time_.step_count(),
            .leaders = leaders_.size(),
            .simulated = simulated};
  }
  // After play(): all hosts have ended, so that they may be destroyed.
  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  // A replica, with the incarnations that are over.
  struct Incarnation {
    std::unique_ptr<io::VirtualTime::Process> process;
    std::unique_ptr<SimulatedHost> host;
    std::vector<std::unique_ptr<Guest>> guests;
  };
  struct Replica {
    Incarnation now;
    std::uint64_t count = 0;
    bool is_terminating = false;
    seconds ending{};  // Since then, while it had processor time.
    Faults faults;     // Of each incarnation.
  };

  void violate(std::string what) {
    trace_.note("VIOLATION", what);
    // The first few say it; a broken invariant breaks thousands of times.
    if (violations_.size() < 20) violations_.push_back(std::move(what));
  }
  void note(std::string_view text) {
    for (const char c : text) {
      digest_ ^= static_cast<unsigned char>(c);
      digest_ *= 0x100000001b3U;
    }
  }

  // As a cluster admin.
  ApiAnswer ask(std::string_view method, std::string target, json::Value body = {},
                std::string_view type = "application/json") {
    return server_.handle({.method = std::string(method),
                           .target = std::move(target),
                           .content_type = std::string(type),
                           .body = body.is_null() ? "" : json::dump(body)},
                          time_.wall_now());
  }
  void ask_text(std::string_view method, std::string target, std::string_view text) {
    (void)ask(method, std::move(target), json::parse(text).value_or(json::Value()));
  }

  void set_up() {
    node_pool_.set_up();
    ask_text("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             widget_definition());
    const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/";
    for (const std::string_view name : kNamespaces) {
      ask_text("POST", "/api/v1/namespaces",
               fmt::format(R"({{"metadata": {{"name": "{}"}}}})", name));
      for (const auto& [account, verbs] :
           {std::pair(kWidgetAccount, R"(["*"])"),
            std::pair(std::string_view("reader"), R"(["get", "list", "watch"])")}) {
        ask_text("POST", fmt::format("{}{}/roles", rbac, name),
                 fmt::format(R"({{"metadata": {{"name": "{}"}}, "rules": [
                   {{"apiGroups": [""], "resources": ["configmaps"], "verbs": {}}}]}})",
                             account, verbs));
        ask_text("POST", fmt::format("{}{}/rolebindings", rbac, name),
                 fmt::format(R"({{"metadata": {{"name": "{0}"}},
                   "roleRef": {{"kind": "Role", "name": "{0}"}},
                   "subjects": [{{"kind": "ServiceAccount", "name": "{0}", "namespace": "{1}"}}]}})",
                             account, name));
      }
    }
  }

  void begin_host(std::size_t index) {
    Replica& replica = replicas_[index];
    replica.is_terminating = false;
    replica.ending = seconds();
    const std::string name = fmt::format("host-{}.{}", index, ++replica.count);
    network_.faults_of(name) = replica.faults;
    Incarnation& now = replica.now;
    now.process = std::make_unique<io::VirtualTime::Process>(time_);
    now.host =
        std::make_unique<SimulatedHost>(*now.process, name, omissions_.fence, trace_.log(name));
    now.host->set_on_turn([this, name](Duration took) {
      if (took > kTurnMax) {
        violate(fmt::format("wait: a turn of {} took {}", name, to_go_duration(took)));
      }
    });
    now.host->start();
  }
  // What SIGKILL and the loss of the Lease do: nothing of it runs any more.
  void bury(std::size_t index) {
    Replica& replica = replicas_[index];
    replica.now.process->stop();
    network_.faults_of(replica.now.host->name()).is_cut_off = true;
    graveyard_.push_back(std::exchange(replica.now, {}));
    world_.after(seconds(1), [this, index] { begin_host(index); });
  }

  void perform(const Step& step) {
    note(shown(step));
    trace_.note("STEP", shown(step));
    Replica& replica = replicas_[step.host];
    io::VirtualTime::Process* const process = replica.now.process.get();
    const std::string widgets =
        fmt::format("/apis/sim.example.com/v1/namespaces/{}/widgets", step.namespace_);
    const std::string child = fmt::format("/api/v1/namespaces/{}/configmaps/{}-{}", step.namespace_,
                                          step.name, step.number);
    switch (step.kind) {
      case Kind::SetWidget: {
        json::Value widget = json::Object{
            {"spec", json::Object{{"count", step.number},
                                  {"value", std::to_string(step.at.count() / 1'000'000)}}}};
        if (ask("PATCH", widgets + "/" + step.name, widget, "application/merge-patch+json")
                .status == 404) {
          json::set_at(widget, {"metadata", "name"}, json::String(step.name));
          (void)ask("POST", widgets, std::move(widget));
        }
        return;
      }
      case Kind::DeleteWidget: {
        json::Value options = json::Object{};
        if (step.number % 2 == 1) json::set_at(options, {"propagationPolicy"}, "Foreground");
        (void)ask("DELETE", widgets + "/" + step.name, std::move(options));
        return;
      }
      case Kind::DeleteChild:
        (void)ask("DELETE", child);
        return;
      case Kind::EditChild:
        (void)ask("PATCH", child + "?fieldManager=somebody",
                  json::Object{{"data", json::Object{{"value", "edited"}}}},
                  "application/merge-patch+json");
        return;
      case Kind::Stop:
      case Kind::Suspend: {
        if (process == nullptr) return;
        process->stop();
        const Clocks clocks = step.kind == Kind::Stop ? Clocks::WentOn : Clocks::Suspended;
        world_.after(step.span, [this, process, clocks, index = step.host] {
          // It may have been killed meanwhile.
          if (replicas_[index].now.process.get() == process) process->resume(clocks);
        });
        return;
      }
      case Kind::Kill:
        if (process != nullptr) bury(step.host);
        return;
      case Kind::Terminate:
        if (process == nullptr || std::exchange(replica.is_terminating, true)) return;
        replica.now.guests.clear();
        replica.now.host->stop();
        return;
      case Kind::JumpClock:
        if (process == nullptr) return;
        process->jump_wall_clock(step.number % 2 == 0 ? step.span : -step.span);
        return;
      case Kind::CutOff:
        return strike(step, [](Faults& faults) { faults.is_cut_off = true; });
      case Kind::Slow:
        return strike(step, [&step](Faults& faults) {
          // What is on its way may arrive after the Lease has changed hands; the election leaves
          // 5 s for that.
          faults.request_max = std::min<Duration>(milliseconds(step.number), seconds(2));
          faults.answer_max = milliseconds(step.number * 4);
        });
      case Kind::Errors:
        return strike(step, [&step](Faults& faults) {
          const auto rate = static_cast<std::uint32_t>(step.number);
          faults.refused = faults.lost = faults.answer_lost = faults.overloaded = rate;
          faults.broken = faults.garbage = faults.cut = rate;
          faults.silent = rate / 4;
        });
      case Kind::SilentNames:
        return strike(step, [](Faults& faults) { faults.names_are_silent = true; });
      case Kind::Compact:
        server_.compact();
        return;
      case Kind::WishNode:
        return node_pool_.wish(step.name, step.number);
      case Kind::TouchNode:
        return node_pool_.touch(step.name);
      case Kind::DeleteJob:
        return node_pool_.delete_job(step.name, step.number);
      case Kind::ReplaceNode:
        return node_pool_.replace(step.name);
    }
  }
  // A fault of the way to a replica, until its time is over or another one takes its place.
  template <class Set>
  void strike(const Step& step, Set set) {
    const auto apply = [this, index = step.host](const Faults& faults) {
      Replica& replica = replicas_[index];
      replica.faults = faults;
      if (replica.now.host) network_.faults_of(replica.now.host->name()) = faults;
    };
    Faults faults;
    set(faults);
    apply(faults);
    const std::uint64_t number = ++strike_count_;
    strikes_[step.host] = number;
    world_.after(step.span, [this, apply, number, index = step.host] {
      if (strikes_[index] == number) apply(Faults());
    });
  }

  void run_for(Duration duration) {
    const Instant end = time_.world() + duration;
    while (time_.world() < end) {
      if (!time_.step()) break;
      for (std::size_t index = 0; index < kHosts; ++index) {
        const Incarnation& now = replicas_[index].now;
        if (!now.host) continue;
        if (now.host->has_lost()) {
          bury(index);
        } else if (replicas_[index].is_terminating && now.host->has_stopped()) {
          bury(index);
        }
      }
    }
  }

  // Each second: guests of the leader, the garbage collector, and what must hold all the time.
  void look_after() {
    world_.after(seconds(1), [this] {
      server_.collect_garbage(time_.wall_now());
      const bool is_active = time_.world() - began_ < kActive;
      node_pool_.look_after(is_active ? NodePool::Jobs::MayFail : NodePool::Jobs::Succeed);
      for (Replica& replica : replicas_)
        begin_guests(replica);
      check_waits();
      look_after();
    });
  }
  void begin_guests(Replica& replica) {
    Incarnation& now = replica.now;
    if (!now.host || !now.host->is_working() || replica.is_terminating || !now.guests.empty() ||
        now.process->is_stopped()) {
      return;
    }
    leaders_.insert(now.host->name());
    for (const char* target :
         {"/api/v1/namespaces/a/configmaps?watch=true",
          "/api/v1/namespaces/b/configmaps?watch=true", "/api/v1/configmaps?watch=true"}) {
      now.guests.push_back(std::make_unique<Guest>(
          now.host->gateway(), now.host->loop(), kube::service_account("a", "reader"), "a", target,
          [this](std::string what) { violate(std::move(what)); }));
      Guest& guest = *now.guests.back();
      now.host->loop().post([&guest] { guest.begin(); });
    }
  }
  void check_waits() {
    const auto is_alive = [this](const std::string& host) {
      return std::ranges::any_of(replicas_, [&host](const Replica& replica) {
        return replica.now.host && replica.now.host->name() == host &&
               !replica.now.process->is_stopped();
      });
    };
    const Network::Open open = network_.oldest_request(is_alive);
    // A process that was stopped in the middle takes up where it was.
    if (open.count > kRequestsOpenMax) {
      violate(fmt::format("memory: {} requests are open", open.count));
    }
    if (open.age > kRequestEnd + kLongestStop) {
      violate(fmt::format("wait: {} is open for {}", open.target, to_go_duration(open.age)));
    }
    for (Replica& replica : replicas_) {
      if (replica.is_terminating && replica.now.host && !replica.now.process->is_stopped() &&
          ++replica.ending == kTerminationMax) {
        violate(fmt::format("wait: {} was told to end {} ago: {}", replica.now.host->name(),
                            to_go_duration(replica.ending), replica.now.host->unfinished()));
      }
      if (replica.now.host && replica.now.host->cache().statistics().bytes > kCacheBytesMax) {
        violate("memory: the cache is larger than the cluster");
      }
    }
  }

  void on_act(const Network::Acted& acted) {
    const ApiRequest& request = acted.request;
    note(fmt::format("{} {} {} {} {}\n", time_.world().time_since_epoch().count(), acted.host,
                     request.method, request.target, acted.answer.status));
    if (trace_.is_on()) {
      trace_.note(acted.host, fmt::format("{} {} {} {}", request.method, request.target,
                                          request.body.substr(0, 300), acted.answer.status));
    }
    const bool is_review = request.target.contains("/authorization.k8s.io/");
    if (request.method == "GET" || is_review || acted.answer.status >= 300) return;
    if (request.target.contains("/leases")) return;
    ++write_count_;
    node_pool_.check_request(request, acted.answer);
    const json::Value* const lease = server_.find(kLeases, "kube-system", "hangar");
    const std::string_view holder =
        lease == nullptr ? "" : json::string_at(*lease, {"spec", "holderIdentity"});
    if (holder != acted.host) {
      violate(fmt::format("lease: {} wrote {} {} while \"{}\" held the Lease", acted.host,
                          request.method, request.target, holder));
    }
  }

  void check_end() {
    node_pool_.check_end();
    std::map<std::string, const json::Value*> widgets;  // By uid.
    for (const json::Value* const widget : server_.all(kWidgetCollection)) {
      widgets.emplace(json::string_at(*widget, {"metadata", "uid"}), widget);
      const std::string name = kube::key_of(*widget).to_string();
      if (json::find(*widget, {"metadata", "deletionTimestamp"}) != nullptr) {
        violate(fmt::format("lost: the deletion of {} did not end", name));
        continue;
      }
      if (json::int_at(*widget, {"status", "observedGeneration"}) !=
          json::int_at(*widget, {"metadata", "generation"})) {
        violate(fmt::format("lost: the newest state of {} was not seen", name));
      }
      const kube::ObjectKey key = kube::key_of(*widget);
      for (std::int64_t i = 0; i < json::int_at(*widget, {"spec", "count"}); ++i) {
        const json::Value* const child =
            server_.find("configmaps", key.namespace_, fmt::format("{}-{}", key.name, i));
        if (child == nullptr) {
          violate(fmt::format("lost: {} has no ConfigMap {}", name, i));
        } else if (json::string_at(*child, {"data", "value"}) !=
                   json::string_at(*widget, {"spec", "value"})) {
          violate(fmt::format("lost: ConfigMap {} of {} is not as its spec says", i, name));
        }
      }
    }
    std::map<std::string, std::string> shown_in_a;
    for (const json::Value* const child : server_.all("configmaps")) {
      const kube::ObjectKey key = kube::key_of(*child);
      if (key.namespace_ == "a") {
        shown_in_a[key.name] = json::string_at(*child, {"metadata", "resourceVersion"});
      }
      const json::Array* const owners = json::array_at(*child, {"metadata", "ownerReferences"});
      if (owners == nullptr || owners->empty()) continue;
      const auto owner = widgets.find(std::string(json::string_at(owners->front(), {"uid"})));
      const std::size_t dash = key.name.rfind('-');
      const std::int64_t index = std::stoll(key.name.substr(dash + 1));
      if (owner == widgets.end() || index >= json::int_at(*owner->second, {"spec", "count"})) {
        violate(fmt::format("doubled: {} belongs to nothing", key.to_string()));
      }
    }
    std::size_t working = 0;
    for (const Replica& replica : replicas_) {
      if (!replica.now.host || !replica.now.host->is_working()) continue;
      ++working;
      for (std::size_t i = 0; i < replica.now.guests.size(); ++i) {
        const Guest& guest = *replica.now.guests[i];
        if (i > 0 && guest.last_status() != 403) {
          violate(
              fmt::format("rights: a watch beyond them was answered with {}", guest.last_status()));
        }
        if (i == 0 && (!guest.is_open() || guest.view() != shown_in_a)) {
          violate("lost: a guest does not see what the server has");
        }
      }
    }
    if (working != 1) violate(fmt::format("lease: {} hosts work at the end", working));
  }

  // False: some do not end.
  [[nodiscard]] bool end_hosts() {
    for (std::size_t index = 0; index < kHosts; ++index) {
      if (replicas_[index].now.host) graveyard_.push_back(std::exchange(replicas_[index].now, {}));
    }
    for (Incarnation& one : graveyard_) {
      // Those that are buried: only to free their memory, nobody sees it.
      one.process->resume(Clocks::WentOn);
      one.guests.clear();
      one.host->stop();
    }
    const Instant end = time_.world() + kStopMax;
    const auto have_all_ended = [this] {
      return std::ranges::all_of(graveyard_,
                                 [](const Incarnation& one) { return one.host->has_ended(); });
    };
    while (!have_all_ended() && time_.world() < end)
      time_.step();
    for (const Incarnation& one : graveyard_) {
      if (one.host->has_ended()) continue;
      violate(fmt::format("wait: {} does not end: {}", one.host->name(), one.host->unfinished()));
    }
    if (!have_all_ended()) return false;
    // What the loops still hold refers to the parts.
    for (int i = 0; i < 2000; ++i)
      time_.step();
    graveyard_.clear();
    return true;
  }

  // Of Stop and Suspend.
  static constexpr seconds kLongestStop{60};

  const Scenario& scenario_;
  const Omissions omissions_;
  io::VirtualTime time_;
  ApiServer server_;
  Network network_;
  NodePool node_pool_;
  io::VirtualTime::Queue world_;
  const Instant began_;
  Trace trace_;
  std::vector<Incarnation> graveyard_;
  std::array<Replica, kHosts> replicas_;
  std::array<std::uint64_t, kHosts> strikes_{};
  std::uint64_t strike_count_ = 0;
  std::uint64_t write_count_ = 0;
  std::set<std::string> leaders_;
  std::uint64_t digest_ = 0xcbf29ce484222325U;
  std::vector<std::string> violations_;
  bool has_ended_ = false;
};

// The part before the colon: which invariant is broken.
std::string_view class_of(const std::string& violation) {
  return std::string_view(violation).substr(0, violation.find(':'));
}

}  // namespace

std::string shown(const Step& step) {
  return fmt::format("{} {} host {} {}/{} number {} for {}", to_go_duration(step.at),
                     name_of(step.kind), step.host, step.namespace_, step.name, step.number,
                     to_go_duration(step.span));
}

Scenario draw_scenario(std::uint64_t seed) {
  // Not the generator of the run: leaving out a step must not change what the others are.
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15U + 1);
  const auto draw = [&random](std::uint64_t max) {
    return std::uniform_int_distribution<std::uint64_t>(0, max)(random);
  };
  Scenario scenario{.seed = seed};
  for (std::size_t i = 0; i < kSteps; ++i) {
    Step step{.at = milliseconds(draw(static_cast<std::uint64_t>(milliseconds(kActive).count()))),
              .host = draw(kHosts - 1),
              .namespace_ = std::string(kNamespaces.at(draw(kNamespaces.size() - 1))),
              .name = std::string(1, static_cast<char>('u' + draw(3))),
              .number = draw(3),
              .span = milliseconds(500 + draw(40'000))};
    constexpr std::array<Kind, 20> kKinds = {
        Kind::SetWidget, Kind::SetWidget,    Kind::SetWidget,    Kind::SetWidget,   Kind::SetWidget,
        Kind::SetWidget, Kind::DeleteWidget, Kind::DeleteWidget, Kind::DeleteChild, Kind::EditChild,
        Kind::Stop,      Kind::Stop,         Kind::Suspend,      Kind::Kill,        Kind::Terminate,
        Kind::JumpClock, Kind::CutOff,       Kind::Slow,         Kind::Errors,      Kind::Compact};
    step.kind = kKinds.at(draw(kKinds.size() - 1));
    if (step.kind == Kind::CutOff && draw(2) == 0) step.kind = Kind::SilentNames;
    if (step.kind == Kind::Slow) step.number = draw(4'000);
    if (step.kind == Kind::Errors) step.number = draw(200);
    // A process that is stopped in the middle of its work is worth more than one that has none.
    if (step.kind == Kind::SetWidget && draw(4) == 0) {
      scenario.steps.push_back({.at = step.at + milliseconds(draw(300)),
                                .kind = Kind::Stop,
                                .host = draw(kHosts - 1),
                                .span = milliseconds(16'000 + draw(24'000))});
    }
    scenario.steps.push_back(std::move(step));
  }
  for (std::size_t i = 0; i < kNodeSteps; ++i) {
    constexpr std::array<Kind, 8> kKinds = {Kind::WishNode,  Kind::WishNode,   Kind::WishNode,
                                            Kind::WishNode,  Kind::TouchNode,  Kind::TouchNode,
                                            Kind::DeleteJob, Kind::ReplaceNode};
    scenario.steps.push_back(
        {.at = milliseconds(draw(static_cast<std::uint64_t>(milliseconds(kActive).count()))),
         .kind = kKinds.at(draw(kKinds.size() - 1)),
         .name = node_name(draw(kNodeCount - 1)),
         .number = draw(3)});
  }
  std::ranges::sort(scenario.steps, {}, &Step::at);
  return scenario;
}

// On a thread of its own, as time is a property of the thread: the parts of a host that does not
// end are still in use, so that nothing may be destroyed, and the next play begins with nothing of
// it.
Verdict play(const Scenario& scenario, Omissions omissions, std::FILE* trace) {
  Verdict verdict;
  std::thread([&] {
    auto world = std::make_unique<World>(scenario, omissions, trace);
    verdict = world->play();
    if (!world->has_ended()) (void)world.release();
  }).join();
  return verdict;
}

Scenario shrunk(Scenario scenario, const Verdict& verdict, Omissions omissions) {
  const std::string broken(class_of(verdict.violations.front()));
  const auto fails = [&](const Scenario& candidate) {
    const Verdict found = play(candidate, omissions);
    return !found.violations.empty() && class_of(found.violations.front()) == broken;
  };
  for (std::size_t length = scenario.steps.size() / 2; length > 0; length /= 2) {
    for (std::size_t at = 0; at < scenario.steps.size();) {
      Scenario candidate = scenario;
      const auto first = candidate.steps.begin() + static_cast<std::ptrdiff_t>(at);
      const std::size_t left = candidate.steps.size() - at;
      candidate.steps.erase(first, first + static_cast<std::ptrdiff_t>(std::min(length, left)));
      if (fails(candidate)) {
        scenario = std::move(candidate);
      } else {
        at += length;
      }
    }
  }
  return scenario;
}

}  // namespace hangar::simulation
