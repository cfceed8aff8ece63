// The certificate that a server of ours shows, and whom its callers are to trust for it: from files
// (a mounted Secret), or from a Secret that hangar fills and renews itself.
//
// Guarantees: what is there is looked at again and again, so that a certificate that somebody
// renews is used without a restart; one that is of no use is never taken in place of one that is.
// Several replicas share the Secret: whoever writes it first is right, the others read it.
// Loop thread only.
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

// Keys of the Secret, names of the files. The first three as cert-manager has them.
inline constexpr std::string_view kCertificateKey = "tls.crt";
inline constexpr std::string_view kPrivateKeyKey = "tls.key";
inline constexpr std::string_view kAuthoritiesKey = "ca.crt";
// A Secret that has it, or nothing at all, is hangar's to renew.
inline constexpr std::string_view kAuthorityKeyKey = "ca.key";

// Where the files of a mounted Secret are.
struct CertificateFiles {
  std::filesystem::path certificate = {};
  std::filesystem::path key = {};
  std::filesystem::path authorities = {};  // Empty, or not there: the caller knows whom to trust.

  // By their usual names.
  [[nodiscard]] static CertificateFiles in(const std::filesystem::path& directory);
  [[nodiscard]] bool are_given() const { return !certificate.empty() || !key.empty(); }
};

struct ServerCertificate {
  http::ServerOptions::Tls tls;
  std::string authorities_pem;  // Empty: whom the machine of the API server trusts.
};

class CertificateKeeper {
 public:
  struct Options {
    CertificateFiles files = {};  // None: the Secret.
    std::string namespace_ = {};
    std::string secret = {};
    std::vector<std::string> names = {};  // Of the server.
    // A file with the authorities of its clients; empty: it asks for no certificate of theirs.
    std::filesystem::path client_authorities = {};
  };
  using Listener = std::function<void(const ServerCertificate&)>;

  // `client` writes whether or not this host leads. `listener` is told of each certificate that is
  // another one than before.
  CertificateKeeper(io::Loop& loop, kube::Client client, Log log, Options options,
                    Listener listener);
  CertificateKeeper(const CertificateKeeper&) = delete;
  CertificateKeeper& operator=(const CertificateKeeper&) = delete;
  // Stop it before.
  ~CertificateKeeper();

  void start();
  [[nodiscard]] io::Task<void> stop();

  // Whether there is a certificate and it is valid now; Unavailable says why not.
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
  std::optional<Error> problem_;  // Of the last look.
  std::stop_source stop_;
  std::optional<io::OneShot<bool>> ended_;  // Once it was started.
};

// What the two sources have in common. InvalidInput: it cannot be used.
[[nodiscard]] Result<ServerCertificate> server_certificate(std::string certificate_pem,
                                                           std::string key_pem,
                                                           std::string authorities_pem);

}  // namespace hangar::admission
