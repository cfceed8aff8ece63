// Typed verbs on any resource of one API server.
//
// Requests that are safe to repeat are retried with back-off and jitter: those that were never
// sent; reads whose connection was lost or that were answered by 502, 503 or 504; and everything
// that the server deferred by Retry-After. A write whose connection was lost may or may not have
// taken effect: it fails with Unavailable, and the next reconciliation finds out. Every other
// failure is an Error whose kind says what to do and whose message is the server's own.
//
// While the client's Fence is shut, a write fails with Unavailable: nothing is sent, or no more of
// it.
//
// Names, namespaces and groups go into URLs only if they cannot change the URL's meaning; otherwise
// InvalidInput. Loop thread only.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube {

class Fence;        // kube/fence.h
class Credentials;  // kube/auth/credentials.h

// The user that a request impersonates. Empty user: ourselves.
struct Identity {
  std::string user;
  std::vector<std::string> groups;
  // Further attributes that authenticators gave the user, by key; some authorizers read them.
  std::map<std::string, std::vector<std::string>> extra = {};
  auto operator<=>(const Identity&) const = default;
};
// The user name of a ServiceAccount begins with this; <namespace>:<name> follows.
inline constexpr std::string_view kServiceAccountPrefix = "system:serviceaccount:";
// system:serviceaccount:<namespace>:<name> with the groups the API server gives it.
[[nodiscard]] Identity service_account(std::string_view namespace_, std::string_view name);
// The service account with that user name; std::nullopt for other users.
[[nodiscard]] std::optional<Identity> service_account_of(std::string_view user);

enum class PatchType : std::uint8_t { Json, Merge, Strategic };
enum class Propagation : std::uint8_t { Default, Orphan, Background, Foreground };

struct WriteOptions {
  std::string field_manager = "hangar";
  bool dry_run = false;
  std::string subresource = {};  // "status", "scale", ...
  // What the server does with unknown and duplicate fields: "Strict", "Warn", "Ignore". Empty: its
  // default, which is Warn.
  std::string field_validation = {};
  // Of create, update and patch: how much of the object the answer contains.
  Detail detail = Detail::Whole;
};
struct ApplyOptions {
  std::string field_manager = "hangar";
  bool force = false;
  bool dry_run = false;
  std::string subresource = {};
  std::string field_validation = {};  // As above.
};
struct DeleteOptions {
  Propagation propagation = Propagation::Default;
  std::string uid = {};               // Precondition: only this very object.
  std::string resource_version = {};  // Precondition: only if unchanged.
  bool dry_run = false;
};
struct ListOptions {
  std::string namespace_ = {};  // Empty: all namespaces.
  std::string label_selector = {};
  std::string field_selector = {};
  std::uint32_t page_size = 500;
  std::string resource_version = {};
  std::string resource_version_match = {};
  Detail detail = Detail::Whole;
  // Chooses what the result keeps of an item: the item, an equal object, or nothing (null). Called
  // for the items of each page when it arrives; an error ends the list. Empty: keeps every item.
  std::function<Result<ObjectPtr>(ObjectPtr item)> holds = {};
  // Called before the first page, and again whenever the list starts over.
  std::function<void()> on_begin = {};
};
struct List {
  std::string resource_version;
  std::vector<ObjectPtr> items;
};

// A complete request, to be forwarded.
struct RawRequest {
  std::string method = "GET";
  std::string target = {};  // Path and query, encoded, below the server's URL.
  std::string accept = "application/json";
  std::string content_type = "application/json";  // Of the body, where there is one.
  std::string body = {};
  std::string traceparent = {};  // The header of this name; empty: none.
  // For send(): see http::Request::on_progress.
  std::function<void(std::uint64_t bytes)> on_progress = {};
};

// The ErrorKind for a Status response: 400/422 InvalidInput, 401/403 Denied, 404 NotFound, 409
// Conflict (AlreadyExists too), 410 Expired, 413 LimitExceeded, 429/5xx Unavailable.
[[nodiscard]] Error error_from_status(int http_status, std::string_view body);
// The metav1.Status.reason of an error made by error_from_status ("AlreadyExists"), or "".
[[nodiscard]] std::string_view reason_of(const Error& error);

struct ClientOptions {
  // Our own rate limit, besides the server's: requests per second after a burst. Zero: none,
  // because the API server's priority and fairness does it better.
  double requests_per_second = 0;
  std::uint32_t burst = 100;
  // Applies to everything but reads. Null: no fence.
  std::shared_ptr<const Fence> fence = {};
  // Shares connections with no other client of the same credentials, so that the streams of the
  // others cannot delay its requests.
  bool has_own_connections = false;
  // The threads that parse long responses and watch events. They outlive the client; null: the loop
  // parses everything.
  io::Workers* readers = nullptr;
};

// Learns what a client sends and receives. Each member is called once for a request, however often
// that is retried.
class RequestObserver {
 public:
  // The request is about to be sent, with a body of this size. Returns its traceparent header;
  // empty: none.
  [[nodiscard]] virtual std::string on_request(std::uint64_t body_bytes) = 0;
  // The answer is complete. Not called for a request without one.
  virtual void on_response(int status, std::uint64_t body_bytes) = 0;

 protected:
  RequestObserver() = default;
  RequestObserver(const RequestObserver&) = default;
  RequestObserver& operator=(const RequestObserver&) = default;
  ~RequestObserver() = default;
};

class Client {
 public:
  Client(io::Loop& loop, http::Client& http, std::shared_ptr<Credentials> credentials,
         Metrics& metrics, Log log, ClientOptions options = {});
  ~Client();

  // A client for the same server and connections whose requests impersonate `identity`.
  [[nodiscard]] Client as(Identity identity) const;
  // The same client, of which `observer` learns each request of send(), and each that returns a
  // ValueTask. It outlives those tasks. Null: nobody does.
  [[nodiscard]] Client observed_by(RequestObserver* observer) const;

  using ValueTask = io::Task<Result<json::Value>>;
  [[nodiscard]] ValueTask get(Resource resource, ObjectKey key, std::stop_token stop,
                              std::string subresource = {}) const;
  // Follows `continue` to the end and returns one consistent snapshot (a 410 in the middle starts
  // over). A page of more than limits::kListPageBytesMax is requested again with fewer items, and
  // after a large page fewer items are requested. A worker reads long pages; without workers the
  // loop reads them in slices, between its other work. `options.holds` is called in slices, too.
  [[nodiscard]] io::Task<Result<List>> list(Resource resource, ListOptions options,
                                            std::stop_token stop) const;
  [[nodiscard]] ValueTask create(Resource resource, json::Value object, WriteOptions options,
                                 std::stop_token stop) const;
  // Conflict when metadata.resourceVersion is not the stored one.
  [[nodiscard]] ValueTask update(Resource resource, json::Value object, WriteOptions options,
                                 std::stop_token stop) const;
  [[nodiscard]] ValueTask patch(Resource resource, ObjectKey key, PatchType type, json::Value patch,
                                WriteOptions options, std::stop_token stop) const;
  // Server-side apply. When `force` is off, a Conflict names the managers.
  [[nodiscard]] ValueTask apply(Resource resource, json::Value object, ApplyOptions options,
                                std::stop_token stop) const;
  // Returns the deleted object or the Status. NotFound when the object did not exist.
  [[nodiscard]] ValueTask remove(Resource resource, ObjectKey key, DeleteOptions options,
                                 std::stop_token stop) const;

  // GET of any path below the server's URL ("/version", "/apis"); returns the JSON of the response.
  // `accept`: a media type to request instead of application/json.
  [[nodiscard]] ValueTask get_path(std::string path, std::stop_token stop,
                                   std::string accept = {}) const;
  // POST of a virtual resource (SubjectAccessReview).
  [[nodiscard]] ValueTask post_path(std::string path, json::Value body, std::stop_token stop) const;

  // Returns the response unchanged, whatever its status. Retried by the rules above. An error means
  // that there was no whole response (errors as for http::Client::send), or no credentials.
  [[nodiscard]] io::Task<Result<http::Response>> send(RawRequest request,
                                                      std::stop_token stop) const;
  // The same in pieces, without a time limit and without retries: see http::Client::stream.
  [[nodiscard]] io::Task<Result<http::Response>> stream(RawRequest request,
                                                        http::Client::StreamHandler handler,
                                                        std::stop_token stop) const;

  // Makes one watch request: `on_line` receives each line of the body until the server or `stop`
  // ends it. Errors as above; the end of the body is not an error. `query` follows "watch=true&".
  [[nodiscard]] io::Task<Result<>> watch(Resource resource, std::string namespace_,
                                         std::string query,
                                         std::function<Result<>(std::string_view line)> on_line,
                                         std::stop_token stop, Detail detail = Detail::Whole) const;

  // The certificate authorities that verify the server, in PEM; empty: the system's. Errors as
  // for Credentials::grant().
  [[nodiscard]] io::Task<Result<std::string>> server_ca(std::stop_token stop) const;

  [[nodiscard]] io::Loop& loop() const;
  [[nodiscard]] io::Workers* readers() const;
  // The namespace of the kubeconfig's context or of our pod; empty when it gives none.
  [[nodiscard]] const std::string& default_namespace() const;

 private:
  struct Shared;
  explicit Client(std::shared_ptr<Shared> shared, Identity identity, RequestObserver* observer);

  std::shared_ptr<Shared> shared_;
  Identity identity_;
  RequestObserver* observer_ = nullptr;
};

}  // namespace hangar::kube
