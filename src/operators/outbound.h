// Requests of operators to servers besides the API server, as TenantPolicies allow them.
//
// The host makes the connection: it resolves the name, checks the address, and verifies the
// server's certificate. The guest gets the response as the server gave it; redirects are not
// followed. What is refused, or fails, is answered with the header kErrorHeader, which no server
// can send.
//
// Guarantees:
//   - Without a policy that lists servers, nothing is sent.
//   - No credential of the host is sent, and no connection is shared between namespaces.
//   - While the fence is shut, only requests with GET, HEAD and OPTIONS are sent.
//   - Requests of a namespace wait in an order that is fair between namespaces, apart from requests
//     to the API server and from fetches of modules. Too many of them are refused.
#pragma once

#include "base/metrics.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "gateway/gateway.h"
#include "http/address_policy.h"
#include "http/client.h"
#include "io/loop.h"
#include "kube/fence.h"
#include "tenants/outbound_server.h"
#include "tenants/rules.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::operators {

// Why the host itself answers an outbound request.
inline constexpr std::string_view kErrorHeader = "hangar-error";

// Whether a URI of a guest names another server than the API server: an https URL with any host but
// the API server's names and loopback, which the contract has always sent to the API server.
[[nodiscard]] bool is_outbound(std::string_view uri);

struct OutboundTarget {
  tenants::OutboundServer server;
  std::string path;  // And query.

  // As it is sent.
  [[nodiscard]] std::string url() const;
  // For records, which more people may read than the operator's Secrets: without the path, which
  // may be a credential (webhooks of chat services).
  [[nodiscard]] std::string shown() const;
};
// Requires is_outbound(). InvalidInput says what is wrong with the URL.
[[nodiscard]] Result<OutboundTarget> parse_outbound(std::string_view uri);

// The headers that reach the server, or the guest: those of the connection are left out, and those
// that only the host may set.
[[nodiscard]] http::Headers end_to_end(http::Headers headers);

// Loop thread only.
class Outbound {
 public:
  // The references outlive this object.
  struct Parts {
    io::Loop& loop;
    http::Client& client;
    Metrics& metrics;
    std::function<std::shared_ptr<const tenants::Rules>(const std::string& namespace_name)>
        rules_of;
    // For servers of policies that allow private addresses.
    http::AddressPolicy addresses = http::AddressPolicy::public_only();
    std::shared_ptr<const kube::Fence> fence = {};  // Null: every request may be sent.
    std::chrono::milliseconds connect_timeout = http::Request().connect_timeout;
  };
  explicit Outbound(Parts parts);
  Outbound(const Outbound&) = delete;
  Outbound& operator=(const Outbound&) = delete;
  ~Outbound();  // No Exchange is left.

  // Starts a request for which is_outbound() holds. There is always an answer, as by
  // Gateway::begin(). `answer` outlives the Exchange.
  [[nodiscard]] std::unique_ptr<gateway::Exchange> begin(budget::Consumer consumer,
                                                         gateway::Request request,
                                                         gateway::Answer& answer);

 private:
  struct State;
  std::shared_ptr<State> state_;
  const std::unique_ptr<Metrics::Collection> collection_;
};

}  // namespace hangar::operators
