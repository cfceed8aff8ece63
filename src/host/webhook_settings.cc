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
       .help = "where admission webhooks are served by HTTPS, such as :9443 (default: there are "
               "none)",
       .type = "ADDRESS:PORT",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         HANGAR_TRY(http::parse_listen_address(text));
         config.webhooks.bind_address = std::string(text);
         return {};
       }},
      {.name = "webhook-service",
       .help = "the Service by which the API server reaches them, as namespace/name or "
               "namespace/name:port",
       .type = "SERVICE",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.reach = HANGAR_TRY(admission::parse_service(text));
         return {};
       }},
      {.name = "webhook-url",
       .help = "in place of a Service: the URL by which the API server reaches them, such as "
               "https://192.0.2.1:9443",
       .type = "URL",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.reach = HANGAR_TRY(admission::parse_url(text));
         return {};
       }},
      {.name = "webhook-secret",
       .help = "Secret in the host's namespace with the certificate of the webhooks; hangar makes "
               "and renews it unless somebody else has filled it (default hangar-webhook)",
       .type = "NAME",
       .part = Part::Webhooks,
       .set = text_into(&Options::secret)},
      {.name = "webhook-certificate-dir",
       .help = "in place of a Secret: directory with tls.crt, tls.key and ca.crt, read again when "
               "they change",
       .type = "DIRECTORY",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.certificate = admission::CertificateFiles::in(text);
         return {};
       }},
      {.name = "webhook-certificate-file",
       .help = "the same as files of any name: the certificate, in PEM; needs webhook-key-file",
       .type = "FILE",
       .part = Part::Webhooks,
       .set = file_into(&admission::CertificateFiles::certificate)},
      {.name = "webhook-key-file",
       .help = "its private key",
       .type = "FILE",
       .part = Part::Webhooks,
       .set = file_into(&admission::CertificateFiles::key)},
      {.name = "webhook-ca-file",
       .help = "the authority that the API server is to trust for it (default: whom its machine "
               "trusts)",
       .type = "FILE",
       .part = Part::Webhooks,
       .set = file_into(&admission::CertificateFiles::authorities)},
      {.name = "webhook-ca-from",
       .help = "Certificate of cert-manager, as namespace/name, whose authority its injector puts "
               "into webhook configurations (default: hangar puts in ca.crt)",
       .type = "CERTIFICATE",
       .part = Part::Webhooks,
       .set = text_into(&Options::authorities_from)},
      {.name = "webhook-owner",
       .help = "ClusterRole that owns the webhook configurations, so that they go when it is "
               "deleted (default: each Airway owns its own)",
       .type = "NAME",
       .part = Part::Webhooks,
       .set = text_into(&Options::owner)},
      {.name = "webhook-client-ca-file",
       .help = "file with the authorities of the API server's client certificate: reviews are "
               "taken from who shows one (default: from anybody; then modules that a review names "
               "are not fetched, Flights not evaluated, and refusals tell nothing of what a flight "
               "looked up)",
       .type = "FILE",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.client_authorities = text;
         return {};
       }},
      {.name = "webhook-client-names",
       .help = "common names that this certificate may have, with commas between (default: any)",
       .type = "NAMES",
       .part = Part::Webhooks,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.webhooks.client_names = list_of(text);
         return {};
       }},
      {.name = "webhook-drain",
       .help = "how long a host that ends goes on answering, so that the Service has time to leave "
               "it out (default 5s)",
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
                "webhook-bind-address needs webhook-service or webhook-url: how does the API "
                "server reach this host?");
  }
  if (options.bind_address.empty() && options.reach.is_set()) {
    return fail(ErrorKind::InvalidInput,
                "webhook-service and webhook-url need webhook-bind-address: where are webhooks "
                "served?");
  }
  if (options.certificate.certificate.empty() != options.certificate.key.empty()) {
    return fail(ErrorKind::InvalidInput,
                "webhook-certificate-file and webhook-key-file are of no use without each other");
  }
  if (!options.client_names.empty() && options.client_authorities.empty()) {
    return fail(ErrorKind::InvalidInput,
                "webhook-client-names needs webhook-client-ca-file: who says that a name is true?");
  }
  return {};
}

}  // namespace hangar::host
