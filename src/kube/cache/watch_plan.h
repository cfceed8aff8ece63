// Which watches of one resource feed all that is wanted of it.
//
// A watch costs the API server and the connection about the same whatever it covers, so the plan is
// at most kWatchesMax of them: scopes that another one covers take part in its watch, and where
// there are more, they take part in a wider one, whose other objects are not kept. A pure function.
#pragma once

#include "kube/scope.h"

#include <cstddef>
#include <map>
#include <set>
#include <vector>

namespace hangar::kube {

inline constexpr std::size_t kWatchesMax = 2;

// Whether the watch of `wide` tells everything that `narrow` is about. The selectors of `narrow`
// are such as can be evaluated here; only a watch without selectors covers others.
[[nodiscard]] bool covers(const Scope& wide, const Scope& narrow);

// The scope of the watch for each of `wanted`, all of one resource: itself, another one of them, or
// a wider one (a namespace, or all). `denied`: what the host may not watch; those that are wanted
// are for themselves alone, and what they would have covered is as narrow as need be.
[[nodiscard]] std::map<Scope, Scope> plan_watches(const std::vector<Scope>& wanted,
                                                  const std::set<Scope>& denied);

}  // namespace hangar::kube
