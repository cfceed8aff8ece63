#include "host/webhook_settings.h"

#include "admission/certificate_keeper.h"
#include "admission/webhooks.h"
#include "base/result.h"
#include "base/time.h"
#include "host/config.h"
#include "http/listen_address.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::host {

namespace {

using Options = admission::Webhooks::Options;

std::function<Result<>(Config&, std::string_view)> text_into(std::string Options::* member) {
  return [member](Config& config, std::string_view text) -> Result<> {
    config.webhooks.*member = std::string(text);
    return {};
  };
}

std::function<Result<>(Config&, std::string_view)> file_into(
    std::filesystem::path admission::CertificateFiles::* member) {
  return [member](Config& config, std::string_view text) -> Result<> {
    config.webhooks.certificate.*member = text;
    return {};
  };
}

}  // namespace

std::vector<Setting> webhook_settings() {
  return {
      {.name = "webhook-bind-address",
       .help = "address that serves admission webhooks over HTTPS, such as :9443 (default: none, "
               "webhooks are off)",
       .type = "ADDRESS:PORT",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         HANGAR_TRY(http::parse_listen_address(text));
         config.webhooks.bind_address = std::string(text);
         return {};
       }},
      {.name = "webhook-service",
       .help = "Service through which the API server reaches the webhooks, as namespace/name or "
               "namespace/name:port",
       .type = "SERVICE",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.reach = HANGAR_TRY(admission::parse_service(text));
         return {};
       }},
      {.name = "webhook-url",
       .help = "URL at which the API server reaches the webhooks, in place of a Service, such as "
               "https://192.0.2.1:9443",
       .type = "URL",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.reach = HANGAR_TRY(admission::parse_url(text));
         return {};
       }},
      {.name = "webhook-leader-service",
       .help = "Service without a selector through which the API server reaches the webhooks of "
               "operators, as namespace/name or namespace/name:port; the host that leads is its "
               "only endpoint (default: as the other webhooks, for a single host)",
       .type = "SERVICE",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.leader.service = HANGAR_TRY(admission::parse_service(text));
         return {};
       }},
      {.name = "webhook-leader-address",
       .help = "IP address of this host as an endpoint of webhook-leader-service",
       .type = "ADDRESS",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.leader.address = std::string(text);
         return {};
       }},
      {.name = "webhook-secret",
       .help = "Secret in the host's namespace with the certificate of the webhooks; hangar "
               "creates and renews it unless someone else has filled it (default hangar-webhook)",
       .type = "NAME",
       .part = Part::Webhooks,
       .set = text_into(&Options::secret)},
      {.name = "webhook-certificate-dir",
       .help = "directory with tls.crt, tls.key and ca.crt, in place of a Secret; read again when "
               "the files change",
       .type = "DIRECTORY",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.certificate = admission::CertificateFiles::in(text);
         return {};
       }},
      {.name = "webhook-certificate-file",
       .help = "file with the certificate of the webhooks in PEM, in place of a directory; needs "
               "webhook-key-file",
       .type = "FILE",
       .part = Part::Webhooks,
       .set = file_into(&admission::CertificateFiles::certificate)},
      {.name = "webhook-key-file",
       .help = "file with the private key of webhook-certificate-file",
       .type = "FILE",
       .part = Part::Webhooks,
       .set = file_into(&admission::CertificateFiles::key)},
      {.name = "webhook-ca-file",
       .help = "file with the authorities by which the API server verifies "
               "webhook-certificate-file (default: those that its machine trusts)",
       .type = "FILE",
       .part = Part::Webhooks,
       .set = file_into(&admission::CertificateFiles::authorities)},
      {.name = "webhook-ca-from",
       .help = "Certificate of cert-manager, as namespace/name, whose authority its injector "
               "writes into webhook configurations (default: hangar writes ca.crt)",
       .type = "CERTIFICATE",
       .part = Part::Webhooks,
       .set = text_into(&Options::authorities_from)},
      {.name = "webhook-owner",
       .help = "ClusterRole that owns the webhook configurations, so that they are deleted with it "
               "(default: each Airway owns its own)",
       .type = "NAME",
       .part = Part::Webhooks,
       .set = text_into(&Options::owner)},
      {.name = "webhook-client-ca-file",
       .help = "file with the authorities of the API server's client certificate; reviews without "
               "such a certificate are refused (default: reviews are accepted from anyone; then "
               "hangar fetches no module that a review names, evaluates no Flight, and refusals "
               "show nothing that a flight looked up)",
       .type = "FILE",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.client_authorities = text;
         return {};
       }},
      {.name = "webhook-client-names",
       .help = "comma-separated common names that the client certificate may have (default: any)",
       .type = "NAMES",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.client_names = list_of(text);
         return {};
       }},
      {.name = "webhook-drain",
       .help = "time for which a stopping host still answers reviews, until the Service stops "
               "sending them (default 5s)",
       .type = "DURATION",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         const Result<Duration> duration = parse_go_duration(text);
         if (!duration || *duration < Duration::zero()) {
           return fail(ErrorKind::InvalidInput,
                       fmt::format("\"{}\" is not a duration such as 5s", text));
         }
         config.webhooks.drain = *duration;
         return {};
       }},
  };
}

Result<> check(const Options& options) {
  if (!options.bind_address.empty() && !options.reach.is_set()) {
    return fail(ErrorKind::InvalidInput,
                "webhook-bind-address needs webhook-service or webhook-url, by which the API "
                "server reaches this host");
  }
  if (options.bind_address.empty() && options.reach.is_set()) {
    return fail(ErrorKind::InvalidInput,
                "webhook-service and webhook-url need webhook-bind-address, the address that "
                "serves webhooks");
  }
  if (options.leader.service.is_set() &&
      (options.bind_address.empty() || options.leader.address.empty())) {
    return fail(ErrorKind::InvalidInput,
                "webhook-leader-service needs webhook-bind-address and webhook-leader-address, the "
                "address at which this host is reached while it leads");
  }
  if (options.certificate.certificate.empty() != options.certificate.key.empty()) {
    return fail(ErrorKind::InvalidInput,
                "webhook-certificate-file and webhook-key-file must be set together");
  }
  if (!options.client_names.empty() && options.client_authorities.empty()) {
    return fail(
        ErrorKind::InvalidInput,
        "webhook-client-names needs webhook-client-ca-file, which verifies the client certificate");
  }
  return {};
}

}  // namespace hangar::host
