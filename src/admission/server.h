// The HTTPS server to which the API server sends reviews. It passes each review to the reviewer of
// its path, and handles the deadline, form and metrics of all answers.
//
// Guarantees: the answer is sent before the API server stops waiting (it sends its timeout as
// `?timeout=`); if the reviewer takes too long, the answer is a refusal that says so. A malformed
// review gets 400 and a message, any other path gets 404. An object that is nested deeper than a
// document may be is refused without its reviewer (check_depth()). A slow client delays no other
// (http/server.h). More reviews than the host can hold get 503 and a message (review_reader.h).
//
// One thread handles connections, handshakes, probes and the reading of reviews, and another one
// parses large reviews, so that strangers take no time from the main loop. Only complete reviews of
// known senders (Callers) reach the main loop, where reviewers run. While the main loop hangs,
// reviews are still answered in time, as refusals.
//
// Main loop only.
#pragma once

#include "admission/review.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::admission {

// `name`: the rest of the path after the reviewer's prefix: the name of a CRD. An error is a
// refusal with its message. Once `stop` is requested, the reviewer returns soon; its error is then
// reported as a timeout.
using Reviewer = std::function<io::Task<Result<Decision>>(Review review, std::string name,
                                                          std::stop_token stop)>;
// The same for conversions (conversion_review.h). It receives the body as text, since that may be
// large, and returns the body of the answer. Unavailable becomes 503; other errors are those of the
// request and become 400.
using Converter = std::function<io::Task<Result<std::string>>(std::string body, std::string name,
                                                              std::stop_token stop)>;

// A review or a conversion that another component reads and answers, such as the guest of
// an operator.
struct Passed {
  std::string path;   // Below the prefix.
  std::string query;  // Contains how long the API server waits.
  std::string body;
  // The sender has proved to be the API server, or no proof is required. A conversion never has
  // a proof.
  bool is_caller = false;
};
// Once `stop` is requested, it returns soon. An error is answered with 503 and its message.
using Passer = std::function<io::Task<Result<http::Response>>(Passed passed, std::stop_token stop)>;

// Which clients may send reviews. The API server presents a certificate if its
// AdmissionConfiguration has one for this webhook; for conversions it never does.
struct Callers {
  bool must_authenticate = false;
  std::vector<std::string> names;  // Common names of certificates; empty: any verified one.
};

class Server {
 public:
  // Does no I/O. `main` outlives this object. When this object is destroyed, `main` has stopped or
  // has no more requests from it (stop()).
  Server(io::Loop& main, Metrics& metrics, Log log, Callers callers = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Waits for its threads.
  ~Server();

  // A path that ends with '/' covers all paths below it, of reviews those with a dot; the longest
  // match counts. Before listen().
  void review_at(std::string path, Reviewer reviewer);
  void convert_at(std::string path, Converter converter);
  // Bodies are not parsed here, and answers are sent unchanged.
  void pass_at(std::string path, Passer passer);

  // Listens from the first call on, and presents this certificate. Errors as for http::Server.
  [[nodiscard]] Result<> listen(const std::string& address, http::ServerOptions::Tls certificate);
  [[nodiscard]] bool is_listening() const { return door_ != nullptr; }
  // The port it listens on, after listen().
  [[nodiscard]] std::uint16_t port() const;

  // /ready fails from now on. Requests are answered as before.
  void leave();
  [[nodiscard]] bool is_leaving() const;
  // Lets running requests finish. Call it once.
  [[nodiscard]] io::Task<void> stop();

 private:
  class Door;
  struct Shared;

  const std::unique_ptr<Shared> shared_;
  std::unique_ptr<Door> door_;  // Null until listen().
};

// The body of a 401, which the API server writes to its log and into its error.
inline constexpr std::string_view kWhoAreYou =
    "this webhook takes reviews from the API server alone: name a client certificate that "
    "webhook-client-ca-file has signed in the AdmissionConfiguration of the API server";

// An answer with a short text, which appears in the API server's errors.
[[nodiscard]] http::Response in_words(int status, std::string text);

// How long a reviewer may take, from the query of the API server's request: a little less than the
// API server waits. `otherwise`: how long the API server waits if the query does not say.
[[nodiscard]] Duration time_for(std::string_view query, Duration otherwise);

}  // namespace hangar::admission
