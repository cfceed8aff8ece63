// `hangar why`: what wrote an object, and what led to that, as the recorder has it and the API
// server says it of the objects to the user of the kubeconfig.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/managed_fields.h"
#include "commands/records.h"
#include "host/config.h"
#include "recorder/story.h"
#include "seeing/why_search.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

using seeing::WhyFindings;
using seeing::WhyLink;
using seeing::WhyStep;
using seeing::WhyTarget;
using seeing::WhyWrite;

enum class WhyFormat : std::uint8_t { Text, Json, Mermaid };

struct WhyOptions {
  RecordsAccess records;
  std::string object;      // KIND[.GROUP]/NAME
  std::string namespace_;  // Empty: the kubeconfig's.
  std::string field;       // ".spec.replicas"; empty: any.
  std::size_t writes_max = 10;
  WhyFormat format = WhyFormat::Text;
  bool follow = false;
};

// Hands what is found to `print` until it returns false, or, without `follow`, once. NotFound when
// the cluster serves no such kind, or there is neither such an object nor a record of a write on
// it. InvalidInput for an object or field that is not written as one.
[[nodiscard]] Result<> why(const host::Config& config, const WhyOptions& options,
                           const std::function<bool(std::string_view)>& print, const Log& log);

// What is printed, from what was found out.
struct WhyAnswer {
  WhyTarget target;
  std::string field;
  std::optional<CurrentObject> current;  // Nothing: the object is gone.
  WhyFindings findings;
  recorder::ReadDirectory read;
  // Of objects whose events nobody here wrote, by group, kind, namespace and name.
  std::map<recorder::ObjectVersion, CurrentObject> others;
};
[[nodiscard]] std::string why_text(const WhyAnswer& answer);
[[nodiscard]] std::string why_json(const WhyAnswer& answer);
[[nodiscard]] std::string why_mermaid(const WhyAnswer& answer);

}  // namespace hangar::commands
