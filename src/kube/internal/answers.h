// Parts of the API server's responses: pages of lists, times to retry after, warnings.
#pragma once

#include "base/result.h"
#include "http/client.h"
#include "kube/client.h"
#include "kube/object.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube::internal {

// One page of a list, read without building a document.
struct ListPage {
  std::string resource_version;
  std::string continue_token;
  std::vector<ObjectPtr> items;
};
[[nodiscard]] Result<ListPage> parse_list_page(std::string_view body, const Resource& resource);

// How long the server asks us to wait before we retry: its Retry-After header in seconds, or the
// same in the details of the Status. std::nullopt when it does not ask.
[[nodiscard]] std::optional<std::chrono::seconds> retry_after(const http::Response& response);

// The texts of the Warning headers (RFC 7234: 299 - "text").
[[nodiscard]] std::vector<std::string> warnings(const http::Headers& headers);

}  // namespace hangar::kube::internal
