#include "kube/dry_apply.h"

#include "base/result.h"
#include "http/client.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/internal/answers.h"
#include "kube/object.h"
#include "kube/urls.h"

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::kube {

io::Task<Result<std::vector<std::string>>> dry_apply(Client client, Resource resource,
                                                     json::Value object, ApplyOptions options,
                                                     std::stop_token stop) {
  std::string target = HANGAR_CO_TRY(object_path(resource, key_of(object), options.subresource));
  target += Query()
                .add("fieldManager", options.field_manager)
                .add("dryRun", "All")
                .add("fieldValidation", options.field_validation)
                .add("force", options.force ? "true" : "")
                .text();
  const http::Response answer =
      HANGAR_CO_TRY(co_await client.send({.method = "PATCH",
                                          .target = std::move(target),
                                          // JSON is YAML.
                                          .content_type = "application/apply-patch+yaml",
                                          .body = json::dump(object)},
                                         std::move(stop)));
  if (answer.status < 200 || answer.status >= 300) {
    co_return std::unexpected(error_from_status(answer.status, answer.body));
  }
  co_return internal::warnings(answer.headers);
}

}  // namespace hangar::kube
