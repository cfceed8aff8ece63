#include "modules/internal/registry.h"

#include "base/digest.h"
#include "base/result.h"
#include "http/client.h"
#include "http/status.h"
#include "io/task.h"
#include "modules/cosign.h"
#include "modules/docker_config.h"
#include "modules/internal/download.h"
#include "modules/internal/registry_auth.h"
#include "modules/limits.h"
#include "modules/oci_manifest.h"
#include "modules/reference.h"

#include <fmt/core.h>

#include <expected>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::modules {

namespace {

// Registries redirect downloads of blobs to their object store, sometimes via a second one.
constexpr int kBlobRedirectsMax = 5;

bool is_loopback(std::string_view registry) {
  const std::string_view host =
      registry.starts_with('[') ? registry : registry.substr(0, registry.find(':'));
  return host == "localhost" || host.starts_with("127.") || host.starts_with("[::1]");
}

}  // namespace

Registry::Registry(http::Client& client, OciSource source, Credential credential, Trust trust)
    : client_(client),
      source_(std::move(source)),
      credential_(std::move(credential)),
      trust_(std::move(trust)) {}

io::Task<Result<Registry::Manifest>> Registry::manifest(std::string reference,
                                                        std::stop_token stop) {
  Get what{.path = "manifests/" + reference,
           .accept = manifest_media_types(),
           .bytes_max = limits::kManifestBytesMax,
           .redirects_max = 0};
  Result<std::string> bytes = co_await get(std::move(what), std::move(stop));
  if (!bytes) co_return std::unexpected(std::move(bytes).error().in("manifest " + reference));
  Manifest manifest{.bytes = *std::move(bytes), .digest = {}};
  manifest.digest = "sha256:" + sha256_hex(manifest.bytes);
  if (reference.starts_with("sha256:") && manifest.digest != reference) {
    co_return fail(
        ErrorKind::InvalidInput,
        fmt::format("manifest {}: the registry sent another one, {}", reference, manifest.digest));
  }
  co_return manifest;
}

io::Task<Result<std::string>> Registry::referrers(std::string digest, std::stop_token stop) {
  Get what{.path = "referrers/" + digest,
           .accept = "application/vnd.oci.image.index.v1+json",
           .bytes_max = kReferrersBytesMax,
           .redirects_max = 0};
  Result<std::string> bytes = co_await get(std::move(what), std::move(stop));
  if (!bytes) co_return std::unexpected(std::move(bytes).error().in("referrers of " + digest));
  co_return bytes;
}

io::Task<Result<std::string>> Registry::blob(Descriptor descriptor, OnBytes on_bytes,
                                             std::stop_token stop) {
  Get what{.path = "blobs/" + descriptor.digest,
           .accept = "application/octet-stream, */*",
           .bytes_max = descriptor.size_bytes,
           .redirects_max = kBlobRedirectsMax,
           .on_bytes = std::move(on_bytes)};
  Result<std::string> bytes = co_await get(std::move(what), std::move(stop));
  if (!bytes) {
    co_return std::unexpected(std::move(bytes).error().in("blob " + descriptor.digest));
  }
  co_return bytes;
}

io::Task<Result<std::string>> Registry::get(Get what, std::stop_token stop) {
  http::Response response = HANGAR_CO_TRY(co_await send(what, stop));
  if (response.status == http::kUnauthorized && authorization_.empty()) {
    http::Headers challenge = std::move(response.headers);
    if (what.redirects_max > 0) {
      // The answer may be that of a server that the registry redirects to, and that server must not
      // choose the token server, which gets the credentials.
      Get direct = what;
      direct.redirects_max = 0;
      http::Response own = HANGAR_CO_TRY(co_await send(std::move(direct), stop));
      if (own.status != http::kUnauthorized) co_return std::unexpected(refusal(response));
      challenge = std::move(own.headers);
    }
    HANGAR_CO_TRY(co_await authenticate(std::move(challenge), stop));
    response = HANGAR_CO_TRY(co_await send(what, stop));
  }
  if (response.status == http::kOk) co_return std::move(response.body);
  co_return std::unexpected(refusal(response));
}

Error Registry::refusal(const http::Response& response) const {
  Error error = registry_error(response.status, response.body);
  if (error.kind() != ErrorKind::Denied) return error;
  const std::string_view why = credential_.is_anonymous()
                                   ? "there are no credentials for it in the docker config"
                                   : "with the credentials of the docker config";
  return {ErrorKind::Denied, fmt::format("{} ({})", error.message(), why)};
}

io::Task<Result<>> Registry::push_blob(std::string digest, http::BodySource bytes,
                                       std::stop_token stop) {
  const std::string blobs = fmt::format("/v2/{}/blobs/", source_.repository);
  const auto failed = [&digest](Error error) {
    return std::unexpected(std::move(error).in("push blob " + digest));
  };
  Result<http::Response> known = co_await write({.method = "HEAD", .url = blobs + digest}, stop);
  if (!known) co_return failed(std::move(known).error());
  if (known->status == http::kOk) co_return Result<>();
  Result<http::Response> begun =
      co_await write({.method = "POST", .url = blobs + "uploads/"}, stop);
  if (!begun) co_return failed(std::move(begun).error());
  if (begun->status != http::kAccepted) co_return failed(refusal(*begun));
  Result<std::string> place = upload_url(*begun);
  if (!place) co_return failed(std::move(place).error());
  // The colon of a digest may stand unescaped in a query.
  Put put{.method = "PUT",
          .url = fmt::format("{}{}digest={}", *place, place->contains('?') ? '&' : '?', digest),
          .media_type = "application/octet-stream",
          .source = std::move(bytes)};
  Result<http::Response> ended = co_await write(std::move(put), std::move(stop));
  if (!ended) co_return failed(std::move(ended).error());
  if (ended->status != http::kCreated) co_return failed(refusal(*ended));
  co_return Result<>();
}

io::Task<Result<>> Registry::push_manifest(std::string tag, std::string_view media_type,
                                           std::string bytes, std::stop_token stop) {
  const std::string what = "push manifest " + tag;
  Result<http::Response> response =
      co_await write({.method = "PUT",
                      .url = fmt::format("/v2/{}/manifests/{}", source_.repository, tag),
                      .media_type = std::string(media_type),
                      .body = std::move(bytes)},
                     std::move(stop));
  if (!response) co_return std::unexpected(std::move(response).error().in(what));
  if (response->status != http::kCreated) co_return std::unexpected(refusal(*response).in(what));
  co_return Result<>();
}

io::Task<Result<http::Response>> Registry::write(Put what, std::stop_token stop) {
  http::Response response = HANGAR_CO_TRY(co_await write_once(what, stop));
  if (response.status != http::kUnauthorized) co_return response;
  HANGAR_CO_TRY(co_await authenticate(std::move(response.headers), stop));
  co_return co_await write_once(std::move(what), std::move(stop));
}

io::Task<Result<http::Response>> Registry::write_once(Put what, std::stop_token stop) {
  while (true) {
    http::Request request;
    request.method = what.method;
    request.url = address() + what.url;
    if (!what.media_type.empty()) request.headers = {{"Content-Type", what.media_type}};
    if (!authorization_.empty()) request.headers.emplace_back("Authorization", authorization_);
    request.body = what.body;
    request.body_source = what.source;
    request.transport = trust_.transport;
    request.requester = trust_.requester;
    request.total_timeout = limits::kModuleDownloadMax;
    request.response_bytes_max = limits::kRegistryAnswerBytesMax;
    Result<http::Response> response = co_await client_.send(std::move(request), stop);
    if (response) {
      was_reached_ = true;
      co_return response;
    }
    if (response.error().kind() == ErrorKind::Unavailable && fall_back_to_plain_http()) continue;
    co_return std::unexpected(std::move(response).error());
  }
}

Result<std::string> Registry::upload_url(const http::Response& response) const {
  const std::string_view location = http::find_header(response.headers, "Location").value_or("");
  if (location.starts_with('/') && !location.starts_with("//")) return std::string(location);
  // Uploads never go to another server: a blob may be secret, and the credentials are for this
  // registry.
  const std::string own = address() + "/";
  if (location.starts_with(own)) return std::string(location.substr(own.size() - 1));
  return fail(
      ErrorKind::InvalidInput,
      fmt::format("the registry wants the blob at another address than its own, {}", address()));
}

io::Task<Result<http::Response>> Registry::send(Get what, std::stop_token stop) {
  while (true) {
    http::Request request;
    request.url = fmt::format("{}/v2/{}/{}", address(), source_.repository, what.path);
    request.headers = {{"Accept", std::string(what.accept)}};
    if (!authorization_.empty()) request.headers.emplace_back("Authorization", authorization_);
    request.transport = trust_.transport;
    request.requester = trust_.requester;
    request.redirects_max = what.redirects_max;
    Result<http::Response> response =
        co_await download(&client_, std::move(request), what.bytes_max, what.on_bytes, {}, stop);
    if (response) {
      was_reached_ = true;
      co_return response;
    }
    if (response.error().kind() == ErrorKind::Unavailable && fall_back_to_plain_http()) continue;
    co_return std::unexpected(std::move(response).error());
  }
}

bool Registry::fall_back_to_plain_http() {
  const bool may =
      is_https_ && !was_reached_ && (trust_.plain_http || is_loopback(source_.registry));
  if (may) is_https_ = false;
  return may;
}

io::Task<Result<>> Registry::authenticate(http::Headers headers, std::stop_token stop) {
  const std::optional<Challenge> challenge = find_challenge(headers);
  if (!challenge) {
    co_return fail(ErrorKind::Denied,
                   "401 unauthorized, and the registry does not say how to authenticate");
  }
  if (challenge->scheme == Challenge::Scheme::Basic) {
    if (!credential_.username.empty()) {
      authorization_ = basic_authorization(credential_.username, credential_.password);
      co_return Result<>();
    }
    co_return fail(ErrorKind::Denied,
                   fmt::format("401 unauthorized (there are no credentials for {} in the docker "
                               "config)",
                               source_.registry));
  }
  if (!credential_.registry_token.empty()) {
    authorization_ = "Bearer " + credential_.registry_token;
    co_return Result<>();
  }
  // A registry that is trusted over plain HTTP may also have its token server there.
  const PlainText plain = is_https_ && !trust_.plain_http ? PlainText::Refused : PlainText::Allowed;
  http::Request request =
      HANGAR_CO_TRY(token_request(*challenge, credential_, source_.repository, plain));
  request.transport = trust_.transport;
  request.requester = trust_.requester;
  const http::Response response = HANGAR_CO_TRY(co_await download(
      &client_, std::move(request), limits::kTokenAnswerBytesMax, {}, {}, std::move(stop)));
  authorization_ = "Bearer " + HANGAR_CO_TRY(read_token(response));
  co_return Result<>();
}

std::string Registry::address() const {
  return fmt::format("{}://{}", is_https_ ? "https" : "http", host());
}

std::string Registry::host() const {
  // Docker Hub's registry has another host name.
  return source_.registry == "docker.io" ? "registry-1.docker.io" : source_.registry;
}

}  // namespace hangar::modules
