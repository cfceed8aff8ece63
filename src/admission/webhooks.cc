#include "admission/webhooks.h"

#include "admission/certificate_keeper.h"
#include "admission/kept_objects.h"
#include "admission/server.h"
#include "base/base64.h"
#include "base/number.h"
#include "base/result.h"
#include "http/authority.h"
#include "http/listen_address.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::admission {

namespace {

constexpr std::string_view kHttps = "https://";
constexpr std::string_view kInjectAnnotation = "cert-manager.io/inject-ca-from";
constexpr std::chrono::seconds kOwnerAgain{10};
// Time for one write. The host exits without it if the API server does not respond.
constexpr std::chrono::seconds kWithdrawalMax{2};

kube::Resource policy_resource() {
  return {.group = "admissionregistration.k8s.io",
          .version = "v1",
          .plural = "validatingadmissionpolicies",
          .kind = "ValidatingAdmissionPolicy"};
}

kube::Resource binding_resource() {
  return {.group = "admissionregistration.k8s.io",
          .version = "v1",
          .plural = "validatingadmissionpolicybindings",
          .kind = "ValidatingAdmissionPolicyBinding"};
}

kube::Resource slice_resource() {
  return {.group = "discovery.k8s.io",
          .version = "v1",
          .plural = "endpointslices",
          .kind = "EndpointSlice",
          .namespaced = true};
}

// The names that the certificate must have.
std::vector<std::string> all_names(const Reach& reach, const LeaderReach& leader) {
  std::vector<std::string> names;
  if (reach.is_set()) names = reach.server_names();
  if (leader.service.is_set()) {
    std::ranges::move(leader.service.server_names(), std::back_inserter(names));
  }
  return names;
}

Result<std::uint16_t> port_in(std::string_view digits, std::string_view text) {
  const std::uint16_t port = parse_number<std::uint16_t>(digits).value_or(0);
  if (port != 0) return port;
  return fail(ErrorKind::InvalidInput, fmt::format("\"{}\": the port is not a number", text));
}

KeptObjects::Parts keeping(const Webhooks::Parts& parts) {
  return {.loop = parts.loop,
          .client = parts.leader,
          .cache = parts.cache,
          .metrics = parts.metrics,
          .log = parts.log};
}

}  // namespace

kube::Resource configuration_resource() {
  return {.group = "admissionregistration.k8s.io",
          .version = "v1",
          .plural = "validatingwebhookconfigurations",
          .kind = "ValidatingWebhookConfiguration"};
}

Result<Reach> parse_url(std::string_view text) {
  const auto refused = [text](std::string_view why) {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("\"{}\" is not a URL such as https://host:9443, without a path{}", text, why));
  };
  std::string_view host = text;
  if (!host.starts_with(kHttps)) return refused("");
  host.remove_prefix(kHttps.size());
  if (host.ends_with('/')) host.remove_suffix(1);
  const Result<http::Authority> server = http::parse_authority(host);
  if (!server) return refused(fmt::format(": {}", server.error().message()));
  return Reach{.url = fmt::format("{}{}", kHttps, server->to_string())};
}

Result<Reach> parse_service(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  const bool is_named = slash != std::string_view::npos && slash > 0 && slash + 1 < colon;
  if (!is_named) {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("\"{}\" is not a Service as namespace/name or namespace/name:port", text));
  }
  Reach reach{.service_namespace = std::string(text.substr(0, slash)),
              .service_name = std::string(text.substr(slash + 1, colon - slash - 1))};
  if (colon < text.size()) reach.service_port = HANGAR_TRY(port_in(text.substr(colon + 1), text));
  return reach;
}

std::vector<std::string> Reach::server_names() const {
  if (url.empty()) return {fmt::format("{}.{}.svc", service_name, service_namespace)};
  Result<http::Authority> server =
      http::parse_authority(std::string_view(url).substr(kHttps.size()));
  if (!server) return {};
  return {std::move(server->host)};
}

json::Value Reach::client_config(std::string_view path, std::string_view authorities_pem) const {
  json::Object config;
  if (!url.empty()) {
    config["url"] = url + std::string(path);
  } else {
    config["service"] = json::Object{{"namespace", service_namespace},
                                     {"name", service_name},
                                     {"port", service_port},
                                     {"path", path}};
  }
  if (!authorities_pem.empty()) config["caBundle"] = base64_encode(authorities_pem);
  return config;
}

Webhooks::Webhooks(Parts parts, Options options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      server_(parts_.loop, parts_.metrics, parts_.log,
              {.must_authenticate = !options_.client_authorities.empty(),
               .names = options_.client_names}),
      certificate_(parts_.loop, parts_.client, parts_.log,
                   {.files = options_.certificate,
                    .namespace_ = options_.namespace_,
                    .secret = options_.secret,
                    .names = all_names(options_.reach, options_.leader),
                    .client_authorities = options_.client_authorities},
                   [this](const ServerCertificate& one) { on_certificate(one); }),
      kept_(keeping(parts_), configuration_resource(), options_.namespace_),
      policies_(keeping(parts_), policy_resource(), options_.namespace_),
      bindings_(keeping(parts_), binding_resource(), options_.namespace_),
      slices_(keeping(parts_), slice_resource(), options_.namespace_,
              options_.leader.service.service_namespace) {}

Webhooks::~Webhooks() = default;

void Webhooks::want(Registration registration) {
  if (!is_on()) return;
  std::string name = registration.name;
  Registration& kept = registrations_[std::move(name)];
  kept = std::move(registration);
  put(kept);
}

void Webhooks::drop(const std::string& name) {
  registrations_.erase(name);
  kept_.drop(name);
}

void Webhooks::want_policy(json::Value policy, json::Value binding) {
  if (!is_on()) return;
  std::string name(json::string_at(policy, {"metadata", "name"}));
  wanted_policies_.insert_or_assign(
      std::move(name), Policy{.policy = std::move(policy), .binding = std::move(binding)});
  put_all();
}

void Webhooks::keep_no_other_policies() {
  has_all_policies_ = true;
  put_all();
}

Result<> Webhooks::check_policy(const std::string& name) const {
  HANGAR_TRY(policies_.check(name));
  return bindings_.check(name);
}

void Webhooks::start() {
  if (!is_on() || std::exchange(has_started_, true)) return;
  certificate_.start();
}

void Webhooks::lead() {
  if (!is_on()) return;
  is_leading_ = true;
  parts_.loop.spawn(find_owner());
  if (options_.leader.service.is_set()) slices_.start();
  if (!options_.has_reviews) return;
  kept_.start();
  policies_.start();
  bindings_.start();
}

Result<> Webhooks::check() const {
  if (server_.is_leaving()) return fail(ErrorKind::Unavailable, "this host is ending");
  HANGAR_TRY(certificate_.check());
  if (not_listening_) return std::unexpected(*not_listening_);
  return {};
}

io::Task<void> Webhooks::stop(Leaving leaving) {
  if (has_started_) {
    server_.leave();
    const bool ends = leaving == Leaving::Ends;
    // Requests still arrive until endpoints and proxies have removed this host.
    if (ends) std::ignore = co_await parts_.loop.sleep(options_.drain, {});
    // Until another host leads, requests of the API server then fail at once instead of waiting for
    // this host.
    if (ends && is_leading_ && options_.leader.service.is_set()) {
      is_leading_endpoint_ = false;
      put_leader();
      co_await slices_.settle(kWithdrawalMax);
    }
    co_await server_.stop();
    co_await certificate_.stop();
  }
  stop_.request_stop();
  if (!is_leading_) co_return;
  if (options_.leader.service.is_set()) co_await slices_.stop();
  if (!options_.has_reviews) co_return;
  co_await kept_.stop();
  co_await policies_.stop();
  co_await bindings_.stop();
}

void Webhooks::on_certificate(const ServerCertificate& certificate) {
  const Result<> listening = server_.listen(options_.bind_address, certificate.tls);
  not_listening_.reset();
  if (!listening) {
    not_listening_ = listening.error();
    parts_.log.error("the webhooks are not served", {{"error", listening.error().message()}});
  }
  const bool is_another = authorities_pem_ != certificate.authorities_pem;
  authorities_pem_ = certificate.authorities_pem;
  put_all();
  if (!is_another) return;
  for (const auto& [feature, changed] : address_changed_)
    changed();
}

void Webhooks::on_address_change(std::string_view feature, std::function<void()> changed) {
  if (changed) {
    address_changed_[std::string(feature)] = std::move(changed);
  } else if (const auto found = address_changed_.find(feature); found != address_changed_.end()) {
    address_changed_.erase(found);
  }
}

void Webhooks::keep_no_others() {
  is_complete_ = true;
  put_all();
}

void Webhooks::put_all() {
  for (const auto& [name, registration] : registrations_)
    put(registration);
  if (is_owner_known_) {
    for (const auto& [name, wanted] : wanted_policies_) {
      put_owned(policies_, wanted.policy);
      put_owned(bindings_, wanted.binding);
    }
    if (has_all_policies_) {
      policies_.keep_no_others();
      bindings_.keep_no_others();
    }
  }
  put_leader();
  // Configurations that cannot be registered yet must not be deleted meanwhile.
  if (is_complete_ && authorities_pem_ && is_owner_known_) kept_.keep_no_others();
}

std::optional<Address> Webhooks::address_of(std::string_view path) const {
  if (!authorities_pem_) return std::nullopt;
  if (options_.authorities_from.empty()) {
    return Address{.client_config = options_.reach.client_config(path, *authorities_pem_),
                   .annotations = {}};
  }
  return Address{.client_config = options_.reach.client_config(path, {}),
                 .annotations = {{kInjectAnnotation, options_.authorities_from}}};
}

std::optional<json::Value> Webhooks::leader_client_config(std::string_view path) const {
  if (!authorities_pem_) return std::nullopt;
  const Reach& reach = options_.leader.service.is_set() ? options_.leader.service : options_.reach;
  // Contains the authorities even where cert-manager injects them elsewhere: hangar must not
  // annotate this object.
  return reach.client_config(path, *authorities_pem_);
}

// The leader is the only endpoint of its Service until it stops.
void Webhooks::put_leader() {
  const auto& [service, address] = options_.leader;
  if (!service.is_set() || address.empty() || !is_owner_known_) return;
  const bool is_ipv6 = address.find(':') != std::string::npos;
  const Result<http::ListenAddress> listening = http::parse_listen_address(options_.bind_address);
  if (!listening) return;  // The server does not listen; listen() has reported why.
  json::Array endpoints;
  if (is_leading_endpoint_) {
    endpoints.push_back(json::Object{{"addresses", json::Array{address}},
                                     {"conditions", json::Object{{"ready", true}}}});
  }
  put_owned(
      slices_,
      json::Object{
          {"metadata",
           json::Object{
               {"name", fmt::format("{}-{}", service.service_name, is_ipv6 ? "ipv6" : "ipv4")},
               {"labels", json::Object{{"kubernetes.io/service-name", service.service_name},
                                       {"endpointslice.kubernetes.io/managed-by", "hangar.dev"}}}}},
          {"addressType", is_ipv6 ? "IPv6" : "IPv4"},
          {"ports", json::Array{json::Object{
                        {"name", "webhooks"}, {"port", listening->port}, {"protocol", "TCP"}}}},
          {"endpoints", std::move(endpoints)}});
  slices_.keep_no_others();
}

// Registers the webhook only when the API server can reach the path and trusts the certificate.
void Webhooks::put(const Registration& registration) {
  std::optional<Address> address = address_of(registration.path);
  if (!address || !is_owner_known_) return;
  json::Object metadata{{"name", registration.name}};
  const json::Value& owner = owner_.is_null() ? registration.owner : owner_;
  if (!owner.is_null()) metadata["ownerReferences"] = json::Array{owner};
  if (!address->annotations.empty()) metadata["annotations"] = std::move(address->annotations);
  const json::Object webhook{{"name", registration.webhook},
                             {"clientConfig", std::move(address->client_config)},
                             {"rules", registration.rules},
                             {"matchConditions", registration.match_conditions},
                             // The API server converts a request in another version of the kind.
                             {"matchPolicy", "Equivalent"},
                             {"failurePolicy", "Fail"},
                             {"sideEffects", "NoneOnDryRun"},
                             {"timeoutSeconds", registration.timeout.count()},
                             {"admissionReviewVersions", json::Array{"v1"}}};
  kept_.want(json::Object{{"metadata", std::move(metadata)}, {"webhooks", json::Array{webhook}}});
}

void Webhooks::put_owned(KeptObjects& kept, json::Value object) const {
  if (!owner_.is_null()) {
    json::set_at(object, {"metadata", "ownerReferences"}, json::Array{owner_});
  }
  kept.want(std::move(object));
}

io::Task<void> Webhooks::find_owner() {
  while (!options_.owner.empty() && !stop_.stop_requested()) {
    const Result<json::Value> role = co_await parts_.client.get(
        kube::cluster_role_resource(), {.name = options_.owner}, stop_.get_token());
    if (role) {
      owner_ = json::Object{{"apiVersion", "rbac.authorization.k8s.io/v1"},
                            {"kind", "ClusterRole"},
                            {"name", options_.owner},
                            {"uid", json::string_at(*role, {"metadata", "uid"})}};
      break;
    }
    if (role.error().kind() == ErrorKind::NotFound || role.error().kind() == ErrorKind::Denied) {
      parts_.log.warning(
          "the owner of webhook configurations cannot be read: they stay when the "
          "chart is removed",
          {{"error", role.error().message()}});
      break;
    }
    if (!co_await parts_.loop.sleep(kOwnerAgain, stop_.get_token())) co_return;
  }
  if (stop_.stop_requested()) co_return;
  is_owner_known_ = true;
  put_all();
}

}  // namespace hangar::admission
