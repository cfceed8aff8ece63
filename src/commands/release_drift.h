// The differences between what a flight has printed for an instance and the cluster, for the page
// of `hangar console`: what `hangar turbulence` prints, without the values of Secrets.
#pragma once

#include "airways/resource_ref.h"
#include "base/result.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/client.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::commands {

enum class Drift : std::uint8_t {
  None,
  Differs,
  Missing,  // The object does not exist.
  Unknown,  // It could not be read.
};

struct ResourceDrift {
  airways::ResourceRef ref;
  Drift drift = Drift::Unknown;
  std::string difference = {};  // Of Differs, in unified form; the flight's lines begin with '-'.
  bool is_cut = false;          // The difference has more lines than that.
  std::string error = {};       // Of Unknown.
};

struct ReleaseDrift {
  std::string release;
  std::string namespace_;       // Of its history.
  std::size_t revision = 0;     // The active one, as users count them; 0: none has become active.
  std::size_t interrupted = 0;  // Newer revisions, which are not completely applied.
  std::vector<ResourceDrift> resources;  // In the order of the flight.
  std::size_t left_out = 0;              // Resources that were not compared, for lack of time.
};

// Only reads. `instance`: of an Airway, or a Flight or ClusterFlight. Compares the active revision
// of its release, field by field of those that the flight has set. At most
// limits::kConsoleDriftBytesMax of differences, limits::kConsoleDriftResourcesMax resources and
// limits::kConsoleDriftMax of time; what is beyond is said in the result. Errors: NotFound without
// a history, Denied if the user may not list its Secrets, and the server's. A resource that the
// user may not read is Unknown.
[[nodiscard]] io::Task<Result<ReleaseDrift>> release_drift(kube::Client client,
                                                           io::Workers& workers,
                                                           airways::ResourceRef instance,
                                                           std::stop_token stop);

// For the page.
[[nodiscard]] json::Value json_of(const ReleaseDrift& drift);

// Compares one resource with the live object; nothing: it does not exist. The difference has at
// most `bytes_max` bytes. Pure.
[[nodiscard]] ResourceDrift drift_of(const json::Value& resource, std::optional<json::Value> live,
                                     std::size_t bytes_max);

}  // namespace hangar::commands
