// The certificate that one of hangar's servers presents, and the authorities that its clients have
// to trust. Both are in files (a mounted Secret), or in a Secret that hangar fills and
// renews itself.
//
// Guarantees: the files or the Secret are read periodically, so that a renewed certificate is used
// without a restart. An unusable certificate never replaces a usable one. Several replicas share
// the Secret: the first writer wins, and the others read its certificate. Loop thread only.
#pragma once

#include "admission/certificate.h"
#include "base/log.h"
#include "base/result.h"
#include "http/server.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::admission {

// Keys of the Secret and names of the files. The first three are those of cert-manager.
inline constexpr std::string_view kCertificateKey = "tls.crt";
inline constexpr std::string_view kPrivateKeyKey = "tls.key";
inline constexpr std::string_view kAuthoritiesKey = "ca.crt";
// hangar renews only a Secret that has this key, or that has no certificate.
inline constexpr std::string_view kAuthorityKeyKey = "ca.key";

// The files of a mounted Secret.
struct CertificateFiles {
  std::filesystem::path certificate = {};
  std::filesystem::path key = {};
  std::filesystem::path authorities = {};  // Empty or missing: clients trust the authority already.

  // The files of that directory, with their usual names.
  [[nodiscard]] static CertificateFiles in(const std::filesystem::path& directory);
  [[nodiscard]] bool are_given() const { return !certificate.empty() || !key.empty(); }
};

struct ServerCertificate {
  http::ServerOptions::Tls tls;
  std::string authorities_pem;  // Empty: the API server uses the trust store of its machine.
};

class CertificateKeeper {
 public:
  struct Options {
    CertificateFiles files = {};  // Unset: use the Secret.
    std::string namespace_ = {};
    std::string secret = {};
    std::vector<std::string> names = {};  // Names of the server.
    // A file with the authorities of clients; empty: the server asks clients for no certificate.
    std::filesystem::path client_authorities = {};
  };
  using Listener = std::function<void(const ServerCertificate&)>;

  // `client` writes whether or not this host leads. `listener` receives each certificate that
  // differs from the previous one.
  CertificateKeeper(io::Loop& loop, const kube::Client& client, Log log, Options options,
                    Listener listener);
  CertificateKeeper(const CertificateKeeper&) = delete;
  CertificateKeeper& operator=(const CertificateKeeper&) = delete;
  // Call stop() before.
  ~CertificateKeeper();

  void start();
  [[nodiscard]] io::Task<void> stop();

  // Checks that there is a certificate and that it is valid now; Unavailable says why not.
  [[nodiscard]] Result<> check() const;

 private:
  [[nodiscard]] io::Task<void> keep_looking();
  [[nodiscard]] io::Task<Result<ServerCertificate>> look();
  [[nodiscard]] io::Task<Result<ServerCertificate>> look_for_its_own();
  [[nodiscard]] Result<ServerCertificate> read_files() const;
  [[nodiscard]] io::Task<Result<ServerCertificate>> read_secret();
  [[nodiscard]] io::Task<Result<>> write_secret(const Issued& issued, const json::Value* present);

  io::Loop& loop_;
  const kube::Client client_;
  const Log log_;
  const Options options_;
  const Listener listener_;
  std::optional<ServerCertificate> current_;
  std::optional<Error> problem_;  // Error of the last attempt.
  std::stop_source stop_;
  std::optional<io::OneShot<bool>> ended_;  // Unset before start().
};

// Checks a certificate of either source. InvalidInput if it cannot be used.
[[nodiscard]] Result<ServerCertificate> server_certificate(std::string certificate_pem,
                                                           std::string key_pem,
                                                           std::string authorities_pem);

}  // namespace hangar::admission
