// What a flight printed, as stages of resources.
//
// The grammar is yoke's: one object, a stream of objects, an array of objects (one stage), or an
// array of arrays (stages); JSON or YAML. Unlike yoke, nothing is ever left out: text that does not
// parse to its end is an error, because what is missing from an output gets deleted.
#pragma once

#include "airways/resource_ref.h"
#include "base/result.h"

#include <string_view>

namespace hangar::airways {

struct Output {
  Stages stages;  // None of them empty. No stages at all is valid: it prunes everything.
};

// Every resource has apiVersion, kind and metadata.name, and names that are one path segment;
// Namespaces and CustomResourceDefinitions stand in a stage of their own before the rest of theirs.
// Errors: InvalidInput that names the document or index, LimitExceeded for too many bytes or
// resources. A top-level `null` is what Go prints for a list without elements: no resources.
[[nodiscard]] Result<Output> parse_output(std::string_view text);

// InvalidInput when two resources have the same ref: applying both would make them fight. Called
// again by prepare_release (ownership.h), when namespaces are known.
[[nodiscard]] Result<> check_unique(const Stages& stages);

}  // namespace hangar::airways
