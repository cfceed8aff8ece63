#include "modules/internal/registry_auth.h"

#include "base/base64.h"
#include "base/result.h"
#include "base/text.h"
#include "http/client.h"
#include "http/status.h"
#include "json/value.h"
#include "modules/docker_config.h"
#include "modules/internal/http_status.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::modules {

namespace {

// Parses "Bearer realm="...",service="...", Basic realm=..." from left to right.
class ChallengeReader {
 public:
  explicit ChallengeReader(std::string_view text) : rest_(text) {}

  std::vector<Challenge> read() {
    std::vector<Challenge> found;
    std::optional<Challenge> current;  // std::nullopt inside an unknown scheme.
    while (true) {
      // Also skips remains of other schemes' tokens: "Negotiate abc==".
      skip(" \t,=\"");
      const std::string_view word = take_word();
      if (word.empty()) break;
      skip(" \t");
      if (!rest_.starts_with('=')) {
        if (current) found.push_back(*std::move(current));
        current = challenge_of(word);
        continue;
      }
      rest_.remove_prefix(1);
      skip(" \t");
      const std::string value = take_value();
      if (!current) continue;
      if (equals_ignoring_case(word, "realm")) current->realm = value;
      if (equals_ignoring_case(word, "service")) current->service = value;
      if (equals_ignoring_case(word, "scope")) current->scope = value;
    }
    if (current) found.push_back(*std::move(current));
    return found;
  }

 private:
  static std::optional<Challenge> challenge_of(std::string_view scheme) {
    if (equals_ignoring_case(scheme, "basic")) return Challenge{.scheme = Challenge::Scheme::Basic};
    if (equals_ignoring_case(scheme, "bearer")) {
      return Challenge{.scheme = Challenge::Scheme::Bearer};
    }
    return std::nullopt;
  }

  void skip(std::string_view letters) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(letters), rest_.size()));
  }
  std::string_view take_word() {
    const std::size_t end = std::min(rest_.find_first_of(" \t,=\""), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }
  std::string take_value() {
    if (!rest_.starts_with('"')) return std::string(take_word());
    rest_.remove_prefix(1);
    std::string value;
    while (!rest_.empty() && rest_.front() != '"') {
      if (rest_.front() == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
      value += rest_.front();
      rest_.remove_prefix(1);
    }
    if (!rest_.empty()) rest_.remove_prefix(1);
    return value;
  }

  std::string_view rest_;
};

std::string url_encode(std::string_view text) {
  std::string encoded;
  for (const char letter : text) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' ||
                          letter == '_' || letter == '~';
    if (is_plain) {
      encoded += letter;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(letter));
    }
  }
  return encoded;
}

// True for text that is safe in a header and in a status: printable ASCII.
bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char letter) { return letter >= ' ' && letter <= '~'; });
}

// The registry's own message: errors[0].code and message, if present.
std::string words_of(std::string_view body) {
  constexpr std::size_t kWordsBytesMax = 300;
  const Result<json::Value> parsed = json::parse(body);
  if (!parsed) return {};
  const json::Array* const errors = json::array_at(*parsed, {"errors"});
  if (errors == nullptr || errors->empty()) return {};
  std::string words = fmt::format("{}: {}", json::string_at(errors->front(), {"code"}),
                                  json::string_at(errors->front(), {"message"}));
  if (words.size() > kWordsBytesMax) words.resize(kWordsBytesMax);
  std::ranges::replace_if(words, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return words;
}

}  // namespace

std::optional<Challenge> find_challenge(const http::Headers& headers) {
  std::optional<Challenge> best;
  for (const auto& [name, value] : headers) {
    if (!equals_ignoring_case(name, "www-authenticate")) continue;
    for (Challenge& challenge : ChallengeReader(value).read()) {
      if (!best || (best->scheme == Challenge::Scheme::Basic &&
                    challenge.scheme == Challenge::Scheme::Bearer)) {
        best = std::move(challenge);
      }
    }
  }
  return best;
}

std::string basic_authorization(std::string_view user, std::string_view password) {
  return "Basic " + base64_encode(fmt::format("{}:{}", user, password));
}

Result<http::Request> token_request(const Challenge& challenge, const Credential& credential,
                                    std::string_view repository, PlainText plain) {
  const bool is_secure = challenge.realm.starts_with("https://");
  if (!is_printable(challenge.realm) || challenge.realm.contains(' ') ||
      (!is_secure && !challenge.realm.starts_with("http://"))) {
    return fail(ErrorKind::Denied, "the registry names no URL to get a token from");
  }
  if (!is_secure && plain == PlainText::Refused) {
    return fail(ErrorKind::Denied,
                "the registry wants credentials sent over plain http: set insecure to allow it");
  }
  const std::string scope =
      challenge.scope.empty() ? fmt::format("repository:{}:pull", repository) : challenge.scope;
  http::Request request;
  request.headers = {{"Accept", "application/json"}};
  if (!credential.identity_token.empty()) {
    request.method = "POST";
    request.url = challenge.realm;
    request.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
    request.body = fmt::format(
        "grant_type=refresh_token&client_id=hangar&service={}&scope={}&refresh_token={}",
        url_encode(challenge.service), url_encode(scope), url_encode(credential.identity_token));
    return request;
  }
  request.url = fmt::format("{}{}service={}&scope={}", challenge.realm,
                            challenge.realm.contains('?') ? '&' : '?',
                            url_encode(challenge.service), url_encode(scope));
  if (!credential.username.empty()) {
    request.headers.emplace_back("Authorization",
                                 basic_authorization(credential.username, credential.password));
  }
  return request;
}

Result<std::string> read_token(const http::Response& response) {
  if (response.status != http::kOk) {
    return std::unexpected(registry_error(response.status, response.body).in("token server"));
  }
  const Result<json::Value> parsed = json::parse(response.body);
  if (parsed) {
    for (const std::string_view name : {"token", "access_token"}) {
      const std::string_view token = json::string_at(*parsed, {name});
      if (!token.empty() && is_printable(token)) return std::string(token);
    }
  }
  return fail(ErrorKind::Unavailable, "token server: its answer has no token");
}

Error registry_error(int status, std::string_view body) {
  const std::string words = words_of(body);
  return {kind_of_status(status), words.empty()
                                      ? describe_status(status)
                                      : fmt::format("{}: {}", describe_status(status), words)};
}

}  // namespace hangar::modules
