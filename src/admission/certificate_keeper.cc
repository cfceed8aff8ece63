#include "admission/certificate_keeper.h"

#include "admission/certificate.h"
#include "base/base64.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "http/server.h"
#include "io/event.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <chrono>
#include <expected>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::admission {

namespace {

// A renewed certificate is used within this time. Each check is a request of a few hundred bytes.
constexpr std::chrono::seconds kLook{15};
// More often while there is no certificate, because the server does not listen then.
constexpr std::chrono::seconds kLookWithout{1};
constexpr std::uint64_t kFileBytesMax = limits::kMiB;

std::string text_in(const json::Value& secret, std::string_view key) {
  return base64_decode(json::string_at(secret, {"data", key})).value_or("");
}

}  // namespace

Result<ServerCertificate> server_certificate(std::string certificate_pem, std::string key_pem,
                                             std::string authorities_pem) {
  HANGAR_TRY(read_certificate(certificate_pem));
  if (!has_key(certificate_pem, key_pem)) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{} is not the key of {}", kPrivateKeyKey, kCertificateKey));
  }
  return ServerCertificate{
      .tls = {.certificate_pem = std::move(certificate_pem), .key_pem = std::move(key_pem)},
      .authorities_pem = std::move(authorities_pem)};
}

CertificateFiles CertificateFiles::in(const std::filesystem::path& directory) {
  return {.certificate = directory / kCertificateKey,
          .key = directory / kPrivateKeyKey,
          .authorities = directory / kAuthoritiesKey};
}

CertificateKeeper::CertificateKeeper(io::Loop& loop, const kube::Client& client, Log log,
                                     Options options, Listener listener)
    : loop_(loop),
      client_(client),
      log_(std::move(log)),
      options_(std::move(options)),
      listener_(std::move(listener)) {}

CertificateKeeper::~CertificateKeeper() = default;

void CertificateKeeper::start() {
  ended_.emplace(loop_);
  loop_.spawn(keep_looking());
}

io::Task<void> CertificateKeeper::stop() {
  stop_.request_stop();
  if (ended_) co_await ended_->wait();
}

Result<> CertificateKeeper::check() const {
  if (!current_) {
    return fail(ErrorKind::Unavailable,
                problem_ ? problem_->message() : std::string("there is no certificate yet"));
  }
  const CertificateFacts facts = HANGAR_TRY(read_certificate(current_->tls.certificate_pem));
  if (facts.not_after <= io::Loop::wall_now()) {
    return fail(ErrorKind::Unavailable,
                fmt::format("the certificate expired at {}{}", to_rfc3339(facts.not_after),
                            problem_ ? ": " + problem_->message() : ""));
  }
  return {};
}

io::Task<void> CertificateKeeper::keep_looking() {
  while (!stop_.stop_requested()) {
    Result<ServerCertificate> found = co_await look();
    if (stop_.stop_requested()) break;
    if (!found) {
      if (!problem_ || problem_->message() != found.error().message()) {
        log_.warning("the certificate of the server cannot be read",
                     {{"error", found.error().message()}});
      }
      problem_ = std::move(found).error();
    } else {
      problem_.reset();
      const bool is_new = !current_ ||
                          current_->tls.certificate_pem != found->tls.certificate_pem ||
                          current_->tls.key_pem != found->tls.key_pem ||
                          current_->tls.client_ca_pem != found->tls.client_ca_pem ||
                          current_->authorities_pem != found->authorities_pem;
      if (is_new) {
        current_ = *std::move(found);
        log_.info("the server has a certificate");
        listener_(*current_);
      }
    }
    const Duration pause = current_ ? kLook : kLookWithout;
    if (!co_await loop_.sleep(pause, stop_.get_token())) break;
  }
  ended_->set(true);
}

io::Task<Result<ServerCertificate>> CertificateKeeper::look() {
  ServerCertificate found = HANGAR_CO_TRY(co_await look_for_its_own());
  if (options_.client_authorities.empty()) co_return found;
  found.tls.client_ca_pem =
      HANGAR_CO_TRY(io::read_file(options_.client_authorities, kFileBytesMax));
  if (found.tls.client_ca_pem.empty()) {
    co_return fail(ErrorKind::InvalidInput, fmt::format("{} has no certificate of an authority",
                                                        options_.client_authorities.string()));
  }
  // Probes and conversions come without a client certificate.
  found.tls.client_is_optional = true;
  co_return found;
}

io::Task<Result<ServerCertificate>> CertificateKeeper::look_for_its_own() {
  if (options_.files.are_given()) co_return read_files();
  co_return co_await read_secret();
}

Result<ServerCertificate> CertificateKeeper::read_files() const {
  const CertificateFiles& files = options_.files;
  std::string certificate = HANGAR_TRY(io::read_file(files.certificate, kFileBytesMax));
  std::string key = HANGAR_TRY(io::read_file(files.key, kFileBytesMax));
  Result<std::string> authorities = std::string();
  if (!files.authorities.empty()) {
    authorities = io::read_file(files.authorities, kFileBytesMax);
  }
  if (!authorities && authorities.error().kind() != ErrorKind::NotFound) {
    return std::unexpected(std::move(authorities).error());
  }
  return server_certificate(std::move(certificate), std::move(key),
                            authorities ? *std::move(authorities) : std::string());
}

io::Task<Result<ServerCertificate>> CertificateKeeper::read_secret() {
  Result<json::Value> secret = co_await client_.get(
      kube::secret_resource(), {.namespace_ = options_.namespace_, .name = options_.secret},
      stop_.get_token());
  if (!secret && secret.error().kind() != ErrorKind::NotFound) {
    co_return std::unexpected(std::move(secret).error());
  }
  Issued issued;
  if (secret) {
    issued = {.server = {.certificate_pem = text_in(*secret, kCertificateKey),
                         .key_pem = text_in(*secret, kPrivateKeyKey)},
              .authorities_pem = text_in(*secret, kAuthoritiesKey),
              .authority_key_pem = text_in(*secret, kAuthorityKeyKey)};
    const bool is_others =
        issued.authority_key_pem.empty() && !issued.server.certificate_pem.empty();
    if (is_others) {
      co_return server_certificate(std::move(issued.server.certificate_pem),
                                   std::move(issued.server.key_pem),
                                   std::move(issued.authorities_pem));
    }
  }
  const WallTime now = io::Loop::wall_now();
  const Renewal renewal = renewal_of(issued, options_.names, now);
  if (renewal != Renewal::None) {
    issued = HANGAR_CO_TRY(renew(issued, renewal, options_.names, now));
    // Written before it is used, so that no replica presents a certificate that the others do not
    // know. If two write at the same time, the later one fails and reads the other's certificate.
    HANGAR_CO_TRY(co_await write_secret(issued, secret ? &*secret : nullptr));
  }
  co_return server_certificate(std::move(issued.server.certificate_pem),
                               std::move(issued.server.key_pem), std::move(issued.authorities_pem));
}

io::Task<Result<>> CertificateKeeper::write_secret(const Issued& issued,
                                                   const json::Value* present) {
  json::Value secret =
      present != nullptr
          ? *present
          : json::Value(json::Object{{"apiVersion", "v1"},
                                     {"kind", "Secret"},
                                     {"metadata", json::Object{{"namespace", options_.namespace_},
                                                               {"name", options_.secret}}}});
  const auto put = [&secret](std::string_view key, std::string_view text) {
    json::set_at(secret, {"data", key}, json::Value(base64_encode(text)));
  };
  put(kCertificateKey, issued.server.certificate_pem);
  put(kPrivateKeyKey, issued.server.key_pem);
  put(kAuthoritiesKey, issued.authorities_pem);
  put(kAuthorityKeyKey, issued.authority_key_pem);
  Result<json::Value> written;
  if (present == nullptr) {
    written =
        co_await client_.create(kube::secret_resource(), std::move(secret), {}, stop_.get_token());
  } else {
    written =
        co_await client_.update(kube::secret_resource(), std::move(secret), {}, stop_.get_token());
  }
  if (!written) co_return std::unexpected(std::move(written).error());
  log_.info("made a certificate for the server", {{"secret", options_.secret}});
  co_return Result<>();
}

}  // namespace hangar::admission
