// Methods, targets, selectors and Accept headers from anywhere: an understood request is written in
// a form that is understood the same way again, and that cannot leave its path.
#include "base/assert.h"
#include "gateway/documents.h"
#include "gateway/read_scope.h"
#include "gateway/request_target.h"
#include "gateway/view.h"
#include "kube/object.h"
#include "kube/selector.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using hangar::kube::FieldSelector;
  using hangar::kube::LabelSelector;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* method : {"GET", "POST", "DELETE"}) {
    const auto target = hangar::gateway::parse_target(method, text);
    if (!target) continue;
    const std::string written = target->to_string();
    HANGAR_ASSERT(written.starts_with('/') && !written.contains("//") &&
                      !written.contains("/../") && !written.contains("/./"),
                  "a path that can be read in two ways");
    const auto again = hangar::gateway::parse_target(method, written);
    // Encoding may make it longer than allowed; nothing else may be wrong with it.
    if (!again) continue;
    HANGAR_ASSERT(again->verb == target->verb &&
                      again->options.field_selector == target->options.field_selector,
                  "read differently the second time");
    HANGAR_ASSERT(again->to_string() == written, "not the same after writing");
    HANGAR_ASSERT(again->group == target->group && again->plural == target->plural &&
                      again->namespace_ == target->namespace_ && again->name == target->name,
                  "another object the second time");
    const auto scope = hangar::gateway::ReadScope::of(*target);
    if (scope) {
      const hangar::gateway::Attributes asked = scope->attributes();
      HANGAR_ASSERT(asked.namespace_ == target->namespace_ && asked.resource == target->plural,
                    "authorised in another place");
      HANGAR_ASSERT(asked.namespace_.empty() || asked.namespace_ == scope->view().namespace_(),
                    "shows another namespace than the authorised one");
    }
    for (const std::string& segment : target->segments)
      HANGAR_ASSERT(segment.find('/') == std::string::npos, "a slash within a segment");
  }
  const auto object =
      hangar::kube::Object::make(
          R"({"apiVersion":"v1","kind":"X","metadata":{"name":"a","namespace":"b","labels":{"a":"1"}}})")
          .value();
  const auto labels = LabelSelector::parse(text);
  const auto fields = FieldSelector::parse(text);
  if (labels || fields) {
    const hangar::gateway::View view({}, labels.value_or(LabelSelector()),
                                     fields.value_or(FieldSelector()));
    (void)view.sees(*object);
  }
  for (const auto verb : {hangar::gateway::Verb::Get, hangar::gateway::Verb::List})
    (void)hangar::gateway::read_accept(text, verb);
  return 0;
}
