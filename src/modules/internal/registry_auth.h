// How a registry wants requests to be authenticated: parses its WWW-Authenticate header, and builds
// the request to the token server that the header names. No I/O.
#pragma once

#include "base/result.h"
#include "http/client.h"
#include "modules/docker_config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::modules {

struct Challenge {
  enum class Scheme : std::uint8_t { Basic, Bearer };
  Scheme scheme = Scheme::Basic;
  std::string realm;
  std::string service;
  std::string scope;
};

// The best challenge that we understand in all WWW-Authenticate headers: Bearer before Basic.
[[nodiscard]] std::optional<Challenge> find_challenge(const http::Headers& headers);

// "Basic ..." of user and password.
[[nodiscard]] std::string basic_authorization(std::string_view user, std::string_view password);

enum class PlainText : std::uint8_t { Refused, Allowed };

// The request to the token server for pulling from `repository`. Denied when the realm is not a
// URL, or would receive credentials over plain HTTP although that is refused.
[[nodiscard]] Result<http::Request> token_request(const Challenge& challenge,
                                                  const Credential& credential,
                                                  std::string_view repository, PlainText plain);

// The token in the response. Denied (401, 403), Unavailable (429, 5xx, no token).
[[nodiscard]] Result<std::string> read_token(const http::Response& response);

// The error for a status of 300 or more, with the registry's message.
[[nodiscard]] Error registry_error(int status, std::string_view body);

}  // namespace hangar::modules
