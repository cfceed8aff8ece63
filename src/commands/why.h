// `hangar why`: shows the writes on an object and their causes, from the records, and from the
// managedFields that the kubeconfig's user may read.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/managed_fields.h"
#include "commands/records.h"
#include "host/cluster_session.h"
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
  std::string field;       // ".spec.replicas", see parse_field(); empty: any.
  std::size_t writes_max = 10;
  WhyFormat format = WhyFormat::Text;
  bool follow = false;
  bool bodies = false;  // Shows recorded bodies; JSON has them in any case.
};

// Passes the answer to `print`: once, or with `follow` again for new writes, until `print` returns
// false. NotFound when the cluster does not serve the kind, or there is neither such an object nor
// a recorded write on it. InvalidInput when the object or field has a wrong syntax, or the object
// does not have an item of a list in the path of the field.
[[nodiscard]] Result<> why(const host::Config& config, const WhyOptions& options,
                           const std::function<bool(std::string_view)>& print, const Log& log);

// One answer, without `follow`, over an existing connection. Blocks.
[[nodiscard]] Result<std::string> why_once(const WhyOptions& options, host::ClusterSession& session,
                                           Records& records);

// The content of an answer.
struct WhyAnswer {
  WhyTarget target;
  std::string field;
  FieldPath field_path = {};             // In the present object.
  std::optional<CurrentObject> current;  // Nothing: the object does not exist.
  WhyFindings findings;
  recorder::ReadDirectory read;
  // Objects whose events have no recorded write, by group, kind, namespace and name.
  std::map<recorder::ObjectVersion, CurrentObject> others;
};
[[nodiscard]] std::string why_text(const WhyAnswer& answer);
[[nodiscard]] std::string why_json(const WhyAnswer& answer);
[[nodiscard]] std::string why_mermaid(const WhyAnswer& answer);

}  // namespace hangar::commands
