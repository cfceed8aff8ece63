// Paths and queries of the API server's URLs.
#pragma once

#include "base/result.h"
#include "kube/object.h"

#include <string>
#include <string_view>

namespace hangar::kube {

// "/apis/apps/v1/namespaces/ns/deployments"; without `namespaces/ns` when the namespace is empty or
// the resource has none. InvalidInput when a part could change the meaning of the path: the server
// decodes %2F before it splits, so encoding alone would not make "a/status" a mere name.
[[nodiscard]] Result<std::string> collection_path(const Resource& resource,
                                                  std::string_view namespace_);

// The path of one object, or of one of its subresources. InvalidInput as above, and when the name
// or a required namespace is missing.
[[nodiscard]] Result<std::string> object_path(const Resource& resource, const ObjectKey& key,
                                              std::string_view subresource);

// "?a=b&c=d" from the values that are not empty.
class Query {
 public:
  Query& add(std::string_view name, std::string_view value);
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace hangar::kube
