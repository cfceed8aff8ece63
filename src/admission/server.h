// The HTTPS server that the API server asks: which reviewer answers at which path, and what all
// answers have in common: deadline, form and metrics.
//
// Guarantees: an answer comes before the API server stops waiting (it sends its timeout as
// `?timeout=`), if need be as a refusal that says so. A malformed review gets 400 and a message,
// any other path gets 404. A slow client delays no other (http/server.h). More reviews than the
// host can hold get 503 and a message (review_reader.h).
// Loop thread only.
#pragma once

#include "admission/review.h"
#include "admission/review_reader.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::admission {

// `name`: the rest of the path after the reviewer's prefix. An error is a refusal with its message.
// Once `stop` is requested, the reviewer ends soon; its error is then reported as a timeout.
using Reviewer = std::function<io::Task<Result<Decision>>(Review review, std::string name,
                                                          std::stop_token stop)>;
// The same for conversions (conversion_review.h). It gets the body as text, since that may be
// large, and returns the body of the answer. Unavailable: 503; other errors are the request's: 400.
using Converter = std::function<io::Task<Result<std::string>>(std::string body, std::string name,
                                                              std::stop_token stop)>;

// Which clients may send reviews. The API server shows a certificate if its AdmissionConfiguration
// has one for this webhook; for conversions it never does.
struct Callers {
  bool must_authenticate = false;
  std::vector<std::string> names;  // Common names of certificates; empty: any verified one.
};

class Server {
 public:
  // `workers` read large reviews.
  Server(io::Loop& loop, io::Workers& workers, Metrics& metrics, Log log, Callers callers = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // A path that ends with '/' is for all paths below it; the longest match counts. Before listen().
  void review_at(std::string path, Reviewer reviewer);
  void convert_at(std::string path, Converter converter);

  // Listens from the first call on, and shows this certificate. Errors as of http::Server.
  [[nodiscard]] Result<> listen(const std::string& address, http::ServerOptions::Tls certificate);
  [[nodiscard]] bool is_listening() const { return server_ != nullptr; }

  // /ready fails from now on. Requests are answered as before.
  void leave() { is_leaving_ = true; }
  [[nodiscard]] bool is_leaving() const { return is_leaving_; }
  // Lets running requests finish.
  [[nodiscard]] io::Task<void> stop();

 private:
  [[nodiscard]] io::Task<http::Response> answer(http::ServerRequest request);
  [[nodiscard]] io::Task<http::Response> review(Reviewer reviewer, std::string name,
                                                http::ServerRequest request);
  [[nodiscard]] io::Task<http::Response> convert(Converter converter, std::string name,
                                                 http::ServerRequest request);

  io::Loop& loop_;
  ReviewReader reader_;
  Metrics& metrics_;
  Histogram& seconds_;
  Histogram& conversion_seconds_;
  const Log log_;
  const Callers callers_;
  std::map<std::string, Reviewer, std::less<>> reviewers_;
  std::map<std::string, Converter, std::less<>> converters_;
  std::unique_ptr<http::Server> server_;  // Null until listen().
  bool is_leaving_ = false;
};

// How long a reviewer may take, from the query of the API server's request: a little less than the
// API server waits.
[[nodiscard]] Duration time_for(std::string_view query);

}  // namespace hangar::admission
