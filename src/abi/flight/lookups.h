// The lookups that a flight may make in the cluster while it runs.
//
// The contract's host functions call this interface; the implementation decides what a flight may
// see.
#pragma once

#include "io/task.h"

#include <cstdint>
#include <string>

namespace hangar::abi::flight {

// The outcome of a lookup, with the numbers that flights know.
enum class LookupState : std::uint32_t {
  Ok = 0,
  FeatureNotGranted = 1,  // The flight was not given access to the cluster.
  Error = 2,
  NotFound = 3,
  Unauthenticated = 4,
  Forbidden = 5,
};

// As the flight passed it: not checked, and the namespace may be empty.
struct LookupRequest {
  std::string name;
  std::string namespace_;
  std::string kind;
  std::string api_version;
};

struct LookupAnswer {
  LookupState state = LookupState::Error;
  std::string body;  // JSON when Ok, else a message for the flight.
};

// Called on the loop thread, one call at a time per evaluation. A call must limit its own time:
// evaluate() waits for it even after the flight's time is up.
class Lookups {
 public:
  Lookups() = default;
  Lookups(const Lookups&) = delete;
  Lookups& operator=(const Lookups&) = delete;
  virtual ~Lookups() = default;

  // Returns one object as JSON.
  [[nodiscard]] virtual io::Task<LookupAnswer> lookup(LookupRequest request) = 0;

  // Returns {Group, Version, Kind, Resource, Namespaced} of a kind as JSON.
  [[nodiscard]] virtual io::Task<LookupAnswer> rest_mapping(std::string group_or_api_version,
                                                            std::string kind) = 0;
};

}  // namespace hangar::abi::flight
