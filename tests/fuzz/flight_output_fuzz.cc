// A flight's output: any bytes lead either to an error or to resources that can be released.

#include "airways/identity.h"
#include "airways/output.h"
#include "airways/ownership.h"
#include "airways/plan.h"
#include "airways/revision.h"
#include "base/assert.h"
#include "json/value.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

namespace airways = hangar::airways;
namespace json = hangar::json;

const json::Value& instance() {
  static const json::Value value =
      json::parse(R"({"apiVersion":"examples.com/v1","kind":"App","metadata":)"
                  R"({"name":"web","namespace":"default","uid":"u","generation":1}})")
          .value();
  return value;
}

void check_resource(const json::Value& resource) {
  const airways::ResourceRef ref = airways::ref_of(resource);
  HANGAR_ASSERT(!ref.kind.kind.empty() && !ref.name.empty(), "a resource is named");
  HANGAR_ASSERT((ref.name + ref.namespace_).find('/') == std::string::npos,
                "a name is safe in a path");
}

// Pretends that discovery has every kind.
void check_release(airways::Stages stages) {
  const airways::Release release = airways::release_of(instance());
  airways::Scopes scopes = airways::scopes_defined_in(stages);
  for (const hangar::kube::GroupVersionKind& gvk : airways::kinds_to_discover(stages)) {
    scopes[gvk.group_kind()] = gvk.kind.size() % 2 == 0;
  }
  if (!airways::prepare_release(stages, release, scopes)) return;
  for (const airways::Stage& stage : stages) {
    for (const json::Value& resource : stage) {
      check_resource(resource);
      HANGAR_ASSERT(airways::owner_of(resource) == release.owner(), "a resource is marked");
    }
  }
  HANGAR_ASSERT(airways::plan_prune(stages, stages, {}).empty(), "what is wanted is not pruned");
  const auto secret = airways::secret_of(release.name, release.namespace_, stages, {}, {});
  if (!secret) return;
  const auto read = airways::unpack(*secret);
  HANGAR_ASSERT(read && airways::same_resources(read->stages, stages), "a revision is read back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto output = airways::parse_output(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!output) return 0;

  for (const airways::Stage& stage : output->stages) {
    HANGAR_ASSERT(!stage.empty(), "no stage is empty");
    for (const json::Value& resource : stage)
      check_resource(resource);
  }
  const auto identity = airways::take_identity(output->stages, airways::ref_of(instance()));
  (void)airways::next_status({.live = instance(),
                              .evaluated = instance(),
                              .identity = identity ? &*identity : nullptr,
                              .verdict = airways::deployed()},
                             {});
  check_release(std::move(output->stages));
  return 0;
}
