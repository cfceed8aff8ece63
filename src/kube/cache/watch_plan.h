// Plans which watches of one resource feed all wanted scopes.
//
// A watch costs the API server and the connection about the same whatever it covers, so a plan has
// at most kWatchesMax watches. A scope that another scope covers shares its watch. If that leaves
// too many watches, scopes share a wider watch, whose other objects are not kept. A pure function.
#pragma once

#include "kube/scope.h"

#include <cstddef>
#include <map>
#include <set>
#include <vector>

namespace hangar::kube {

inline constexpr std::size_t kWatchesMax = 2;

// True when the watch of `wide` reports every change to the objects of `narrow`. The selectors of
// `narrow` must be of the kind that we can evaluate; only a watch without selectors covers others.
[[nodiscard]] bool covers(const Scope& wide, const Scope& narrow);

// Returns, for each scope of `wanted` (all of one resource), the scope of its watch: itself,
// another wanted one, or a wider one (a namespace, or all). The host may not watch the scopes in
// `denied`: a wanted scope among them keeps its own watch, and the scopes that it would have
// covered get watches as narrow as necessary.
[[nodiscard]] std::map<Scope, Scope> plan_watches(const std::vector<Scope>& wanted,
                                                  const std::set<Scope>& denied);

}  // namespace hangar::kube
