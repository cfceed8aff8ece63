// A cluster with two replicas of hangar, users who change objects and nodes, a guest who watches
// through the gateway, and everything that goes wrong: from a seed.
//
// A scenario is a list of steps, drawn from a seed before it begins, so that steps can be left out
// one after the other while it still fails. What must hold is checked at each request that the
// server carries out, every second, and at the end, when all faults are over and all is at rest.
#pragma once

#include "base/time.h"
#include "simulation/network.h"
#include "simulation/simulated_host.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace hangar::simulation {

// One thing that happens at a time. What `host`, `number` and `span` mean depends on the kind.
struct Step {
  enum class Kind : std::uint8_t {
    SetWidget,     // A user creates it, or changes its spec: `number` ConfigMaps.
    DeleteWidget,  // In the background, or in the foreground.
    DeleteChild,   // Somebody deletes the ConfigMap of that number.
    EditChild,     // Somebody changes it.
    Stop,          // The process gets no processor time for `span`.
    Suspend,       // Its machine sleeps.
    Kill,          // SIGKILL; the next incarnation begins a second later.
    Terminate,     // SIGTERM.
    JumpClock,     // Somebody sets the time of day: forward, or back.
    CutOff,        // Nothing passes to the host or from it.
    Slow,          // Requests and answers take up to `number` ms.
    Errors,        // `number` in a thousand requests fail, each in one of the ways of Faults.
    SilentNames,   // The name servers do not answer.
    Compact,       // The server forgets the past: watches expire.
    WishNode,      // A user has the node `name` provisioned, or no longer.
    TouchNode,     // Its kubelet writes a heartbeat.
    DeleteJob,     // Somebody deletes a Job of the node.
    ReplaceNode,   // Another machine takes its name.
  };
  Duration at{};
  Kind kind = Kind::SetWidget;
  std::size_t host = 0;
  std::string namespace_ = {};
  std::string name = {};
  std::uint64_t number = 0;
  Duration span{};
};
[[nodiscard]] std::string shown(const Step& step);

struct Scenario {
  std::uint64_t seed = 0;
  std::vector<Step> steps;
};
[[nodiscard]] Scenario draw_scenario(std::uint64_t seed);

// What a test leaves out of the product.
struct Omissions {
  SimulatedHost::Fence fence = SimulatedHost::Fence::Kept;
  Network::Lookups lookups = Network::Lookups::OnTheLoop;
};

struct Verdict {
  // What does not hold; empty: all does.
  std::vector<std::string> violations;
  // Of all requests, their answers and their times.
  std::uint64_t digest = 0;
  std::uint64_t requests = 0;
  std::uint64_t faults = 0;
  std::uint64_t handlers = 0;
  std::uint64_t leaders = 0;  // Incarnations that have led.
  Duration simulated{};
};
// `trace`: where each step, each request, each line of the hosts' logs goes; null: nowhere.
[[nodiscard]] Verdict play(const Scenario& scenario, Omissions omissions = {},
                           std::FILE* trace = nullptr);

// The scenario with as few steps as possible that still breaks the same invariant first.
[[nodiscard]] Scenario shrunk(Scenario scenario, const Verdict& verdict, Omissions omissions);

}  // namespace hangar::simulation
