// Parts of the API server's responses: pages of lists, times to retry after, warnings.
#pragma once

#include "base/result.h"
#include "http/client.h"
#include "kube/client.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace hangar::kube::internal {

// How long the server asks us to wait before we retry: its Retry-After header in seconds, or the
// same in the details of the Status. std::nullopt when it does not ask.
[[nodiscard]] std::optional<std::chrono::seconds> retry_after(const http::Response& response);

// The texts of the Warning headers (RFC 7234: 299 - "text").
[[nodiscard]] std::vector<std::string> warnings(const http::Headers& headers);

}  // namespace hangar::kube::internal
