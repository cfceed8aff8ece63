// The API server as a guest sees it.
//
// The gateway takes a guest's HTTP request as it was written and decides what it means. It answers
// watches from one upstream watch per resource and scope for the whole host, narrowed to the
// request and to what the guest's identity may see; reads that allow it (resourceVersion=0 or "not
// older than") from the same cache. It forwards everything else as that identity, so that the API
// server's own RBAC decides and its own Status is the answer. A guest never sees more than a direct
// request would show it.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/rates.h"
#include "gateway/limits.h"
#include "gateway/tenant_bounds.h"
#include "http/client.h"
#include "io/loop.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::gateway {

struct Attributes;
struct RequestTarget;

struct Request {
  std::string method;
  std::string target;  // Path and query; a scheme and host are ignored.
  http::Headers headers;
  std::string body;
  // The traceparent header for the API server. A guest's own is not forwarded. Empty: no header.
  std::string traceparent = {};
};

// One line of a watch's body, not yet serialized: it shares the cache's object.
struct WatchLine {
  enum class Type : std::uint8_t { Added, Modified, Deleted };
  Type type = Type::Added;
  kube::ObjectPtr object;
  // Metadata: the line has a PartialObjectMetadata in place of the object.
  kube::Detail detail = kube::Detail::Whole;
};
// The next piece of a body: text to hand over unchanged (for a watch one whole line with its
// newline), or a line that is still an object.
using Piece = std::variant<std::string, WatchLine>;
// The piece as text; a line becomes {"type":"ADDED","object":{...}}\n.
[[nodiscard]] std::string text_of(const Piece& piece);

// Receives the answer: on_head once, on_piece any number of times, on_end once, in later turns of
// the loop than begin(). No call comes after the Exchange is destroyed.
class Answer {
 public:
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  virtual ~Answer() = default;

  // How the gateway has parsed the request. Called first; not called if the request does not parse.
  virtual void on_understood(const RequestTarget& /*target*/, const Request& /*request*/) {}
  // How many bytes of an answer that is forwarded whole have arrived. Called before on_head, any
  // number of times.
  virtual void on_progress(std::uint64_t /*bytes*/) {}
  // A bound of the tenant or of the host refuses the request, which `message` explains. Called
  // before on_head.
  virtual void on_bound(const std::string& /*message*/) {}
  virtual void on_head(int status, http::Headers headers) = 0;
  virtual void on_piece(Piece piece) = 0;
  // A bookmark line: only the resourceVersion has changed, which is not worth waking a guest for.
  // Only the last bookmark counts; it follows all pieces before it.
  virtual void on_bookmark(std::string line) = 0;
  virtual void on_end() = 0;
};

// How a host that replaces this one goes on with an answer.
struct Continuation {
  // A GET of the same identity whose answer begins where this one stands; its head is to be left
  // out. Empty: the answer ends here, as a watch may at any time, and the guest watches again.
  std::string target = {};
  std::string accept = {};
};

// A request in progress. Destroying it cancels it.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // For an answer that has begun; everything so far has been given to the Answer. Nothing: it
  // cannot go on.
  [[nodiscard]] virtual std::optional<Continuation> continuation() const { return std::nullopt; }
};

// Loop thread.
class Gateway {
 public:
  struct Parts {
    io::Loop& loop;
    const kube::Client& client;
    kube::Cache& cache;
    kube::Discovery& discovery;
    Metrics& metrics;
    Log log;
    // How often open watches are authorised again and get their bookmarks.
    Duration care_period = limits::kGatewayRecheck;
    // For the objects that the watches of tenants make the host hold. The cache may hold it longer
    // than the gateway lives.
    std::shared_ptr<budget::Accounts> feed_memory =
        std::make_shared<budget::Accounts>(budget::Accounts::Limits());
    // For watches and other streams that the API server answers itself: they are open for long, and
    // may be many. Null: `client`.
    const kube::Client* streams = nullptr;
    // Charged with the loop's time for answers from the cache. Outlives the gateway; null: nothing
    // is charged.
    budget::Rates* rates = nullptr;
  };
  explicit Gateway(Parts parts);
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();  // No Exchange is left.

  // Sets tighter bounds for some tenants; see TenantBounds.
  void limit_tenants(BoundsOf bounds);
  struct Use {
    std::size_t feeds = 0;
    std::uint64_t feed_bytes = 0;
    std::size_t own_watches = 0;
    std::size_t upstream_requests = 0;          // Being answered by the API server.
    std::size_t upstream_requests_waiting = 0;  // For a slot.
    std::size_t reviews = 0;                    // Of rights, being answered by the API server.
    std::size_t reviews_waiting = 0;            // For a slot.
  };
  // Counts for the service accounts of one namespace.
  [[nodiscard]] Use use_of(const std::string& namespace_name) const;
  // The bytes of the objects that each tenant's feeds show.
  [[nodiscard]] std::vector<budget::Accounts::Holding> feed_holdings() const;
  // The attributes that authorised this user's watches, of those that are answered from the cache.
  [[nodiscard]] std::vector<Attributes> watches_of(std::string_view user) const;

  // Starts a request. There is always an answer: a failure is a Status with the code that the API
  // server would give (400 for a path or query that does not parse, 403, 404, 410, 503 while it is
  // unreachable). `answer` outlives the Exchange. An identity with an empty user is the host itself
  // (hangar run).
  [[nodiscard]] std::unique_ptr<Exchange> begin(const kube::Identity& identity, Request request,
                                                Answer& answer);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::gateway
