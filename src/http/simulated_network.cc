#include "http/simulated_network.h"

#include "base/assert.h"

namespace hangar::http {

namespace {

constinit thread_local SimulatedNetwork* network_of_thread = nullptr;

}  // namespace

SimulatedNetwork* SimulatedNetwork::current() {
  return network_of_thread;
}

SimulatedNetwork::SimulatedNetwork() {
  HANGAR_ASSERT(network_of_thread == nullptr, "a thread has one simulated network at a time");
  network_of_thread = this;
}

SimulatedNetwork::~SimulatedNetwork() {
  network_of_thread = nullptr;
}

}  // namespace hangar::http
