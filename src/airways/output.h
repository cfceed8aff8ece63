// Parses the output of a flight into stages of resources.
//
// The grammar is yoke's: one object, a stream of objects, an array of objects (one stage), or an
// array of arrays (stages); JSON or YAML. Unlike yoke, it never skips anything: text that does not
// parse to its end is an error, because resources that are missing from an output are deleted.
#pragma once

#include "airways/resource_ref.h"
#include "base/result.h"

#include <string_view>

namespace hangar::airways {

struct Output {
  Stages stages;  // No stage is empty. An output without stages is valid: it prunes everything.
};

// Every resource has apiVersion, kind and metadata.name, and its names are single path segments.
// Namespaces and CustomResourceDefinitions form their own stage before the rest of their stage.
// Errors: InvalidInput that names the document or index, LimitExceeded for too many bytes or
// resources. A top-level `null` means no resources: Go prints it for a list without elements.
[[nodiscard]] Result<Output> parse_output(std::string_view text);

// InvalidInput if two resources have the same ref: applying both would make them fight.
// prepare_release() (ownership.h) calls it when namespaces are known.
[[nodiscard]] Result<> check_unique(const Stages& stages);

}  // namespace hangar::airways
