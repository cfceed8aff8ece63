// hangar's webhooks as a whole: the server, its certificate, and the configurations in the API
// server. A feature registers its reviewers at server(), and their configuration with want().
//
// Guarantees:
//   - Every replica answers, whether or not it leads; the leader maintains the configurations.
//   - No configuration covers more than a feature requests: none is for all resources.
//   - A configuration is deleted together with its object. The leader deletes configurations and
//     policies that are no longer wanted. With an owner, they are deleted together with it, even if
//     no host runs.
// Loop thread only.
#pragma once

#include "admission/certificate_keeper.h"
#include "admission/kept_objects.h"
#include "admission/server.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/object.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::admission {

// The resource validatingwebhookconfigurations.
[[nodiscard]] kube::Resource configuration_resource();

// How the API server reaches the webhooks: a URL or a Service.
struct Reach {
  std::string url = {};  // "https://host:port"
  std::string service_namespace = {};
  std::string service_name = {};
  std::uint16_t service_port = 443;

  [[nodiscard]] bool is_set() const { return !url.empty() || !service_name.empty(); }
  // The names that the certificate must have.
  [[nodiscard]] std::vector<std::string> server_names() const;
  // `clientConfig` of a configuration. Without authorities, cert-manager's injector adds them.
  [[nodiscard]] json::Value client_config(std::string_view path,
                                          std::string_view authorities_pem) const;
};
// "https://host[:port]" without a path. InvalidInput otherwise.
[[nodiscard]] Result<Reach> parse_url(std::string_view text);
// "namespace/name[:port]". InvalidInput otherwise.
[[nodiscard]] Result<Reach> parse_service(std::string_view text);

// How an object in the API server must refer to a path of the webhooks.
struct Address {
  json::Value client_config;
  json::Object annotations;  // For cert-manager's injector, on the object.
};

// One ValidatingWebhookConfiguration with one webhook.
struct Registration {
  std::string name;     // Name of the configuration.
  std::string webhook;  // Its webhook, as refusals name it: "airways.yoke.cd".
  std::string path;
  json::Array rules;
  json::Array match_conditions;  // {"name", "expression"}
  std::chrono::seconds timeout{10};
  json::Value owner;  // An owner reference, used if the host has no common owner; null: none.
};

// How the API server reaches the leader, which alone runs operators: a Service without a selector,
// whose EndpointSlice the leader maintains.
struct LeaderReach {
  Reach service = {};        // Not set: operators are reached like all other webhooks.
  std::string address = {};  // Address of this process's pod.
};

class Webhooks {
 public:
  struct Options {
    // Whether the host itself answers reviews. Otherwise it maintains no configurations.
    bool has_reviews = true;
    LeaderReach leader = {};
    std::string bind_address = {};  // Empty: there are no webhooks.
    Reach reach = {};
    CertificateFiles certificate = {};  // Unset: use the Secret.
    std::string namespace_ = {};        // The host's namespace; the Secret is in it.
    std::string secret = "hangar-webhook";
    // The Certificate of cert-manager (namespace/name) whose authority the injector puts into the
    // configurations; empty: hangar sets it.
    std::string authorities_from = {};
    // The ClusterRole that owns the configurations, so that they are deleted with the chart; empty:
    // none.
    std::string owner = {};
    Duration drain = std::chrono::seconds(5);
    // A file with the authorities that sign the API server's client certificate, and the common
    // names that it may have (empty: any). Without the file, anyone may send reviews.
    std::filesystem::path client_authorities = {};
    std::vector<std::string> client_names = {};
  };
  struct Parts {
    io::Loop& loop;
    kube::Client client;         // Writes whether or not this host leads.
    const kube::Client& leader;  // Writes only while this host leads.
    kube::Cache& cache;
    Metrics& metrics;
    Log log;
  };
  Webhooks(Parts parts, Options options);
  Webhooks(const Webhooks&) = delete;
  Webhooks& operator=(const Webhooks&) = delete;
  // Call stop() before.
  ~Webhooks();

  [[nodiscard]] bool is_on() const { return !options_.bind_address.empty(); }
  [[nodiscard]] Server& server() { return server_; }

  // Does nothing if webhooks are off.
  void want(Registration registration);
  void drop(const std::string& name);
  // A ValidatingAdmissionPolicy and its binding of the same name; the API server applies the policy
  // itself.
  void want_policy(json::Value policy, json::Value binding);
  // Call it after the last want_policy(): other policies and bindings of this host are deleted.
  void keep_no_other_policies();
  [[nodiscard]] Result<> check_policy(const std::string& name) const;
  // Call it after the last want(): other configurations of this host are deleted.
  void keep_no_others();
  // Whether the API server has the configuration.
  [[nodiscard]] Result<> check(const std::string& name) const { return kept_.check(name); }

  // For configurations that features maintain themselves (a CRD's conversion). std::nullopt until
  // there is a certificate.
  [[nodiscard]] std::optional<Address> address_of(std::string_view path) const;
  // The `clientConfig` of webhooks that only the leader answers. std::nullopt until there is
  // a certificate.
  [[nodiscard]] std::optional<json::Value> leader_client_config(std::string_view path) const;
  // `changed` is called whenever an address changes; an empty function unregisters it. One function
  // for each feature.
  void on_address_change(std::string_view feature, std::function<void()> changed);

  // Answers reviews from now on, once there is a certificate. Call it after all features have
  // registered their paths.
  void start();
  // Maintains the configurations from now on.
  void lead();
  // For /readyz.
  [[nodiscard]] Result<> check() const;
  // Leaves the Service, answers reviews for a while longer, then stops. Replaced: without waiting,
  // because a new process will answer at the same address.
  enum class Leaving : std::uint8_t { Ends, Replaced };
  [[nodiscard]] io::Task<void> stop(Leaving leaving = Leaving::Ends);

 private:
  void on_certificate(const ServerCertificate& certificate);
  void put(const Registration& registration);
  void put_all();
  void put_leader();
  void put_owned(KeptObjects& kept, json::Value object) const;
  [[nodiscard]] io::Task<void> find_owner();

  Parts parts_;
  const Options options_;
  Server server_;
  CertificateKeeper certificate_;
  KeptObjects kept_;
  KeptObjects policies_;
  KeptObjects bindings_;
  KeptObjects slices_;
  std::map<std::string, Registration> registrations_;
  struct Policy {
    json::Value policy;
    json::Value binding;
  };
  std::map<std::string, Policy> wanted_policies_;
  std::optional<std::string> authorities_pem_;  // Unset: no certificate yet.
  std::map<std::string, std::function<void()>, std::less<>> address_changed_;  // By feature.
  std::optional<Error> not_listening_;
  json::Value owner_;              // An owner reference; null: none, or not known yet.
  bool is_owner_known_ = false;    // True also if there is none.
  bool is_complete_ = false;       // keep_no_others() was called.
  bool has_all_policies_ = false;  // keep_no_other_policies() was called.
  bool is_leading_ = false;
  bool is_leading_endpoint_ = true;  // Whether this leader is an endpoint of the leader's Service.
  bool has_started_ = false;
  std::stop_source stop_;
};

}  // namespace hangar::admission
