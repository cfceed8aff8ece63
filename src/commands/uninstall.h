// `hangar uninstall`: prepares a cluster for the removal of hangar, so that no remaining object
// waits for a host.
//
// It stops the hosts of a Deployment, and removes what they would bring back or wait for: the
// configurations of webhooks and admission policies, conversions by webhook, and finalizers. It
// deletes no object that users created, and no resource of these objects. Each step can be
// repeated. It has a few objects in memory at a time, and only their metadata.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/streams.h"
#include "host/config.h"
#include "io/task.h"
#include "kube/client.h"

#include <string>

namespace hangar::commands {

struct UninstallOptions {
  // The Deployment of the hosts, in their namespace; empty: hosts are stopped already.
  std::string deployment;
  // Leaves the finalizers: objects that are deleted afterwards wait until hangar is installed
  // again.
  bool keeps_finalizers = false;
};

// `streams.out` receives a line for each thing that was done, `streams.say` one for each that
// failed; the others are done nevertheless, and the result is Unavailable. Nothing is done if the
// hosts do not stop. What the user may not list counts as not there, which a line says.
[[nodiscard]] Result<> uninstall(const host::Config& config, const UninstallOptions& options,
                                 const Log& log, Streams streams);

// The same with a connection to the cluster, which outlives the task; the host's namespace.
[[nodiscard]] io::Task<Result<>> let_go_of_cluster(const kube::Client& client,
                                                   std::string namespace_, UninstallOptions options,
                                                   Streams streams);

}  // namespace hangar::commands
