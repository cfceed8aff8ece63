// The answer to one request, as long as its guest waits for it.
#pragma once

#include "base/metrics.h"
#include "gateway/documents.h"
#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "http/client.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::gateway {

// Calls the Answer in the right order, and never after its Exchange is destroyed. All tasks that
// work on the answer share the Reply, since each of them may learn late that it is closed. Loop
// thread only.
class Reply {
 public:
  // A long-lived producer of the answer: it runs without a task that holds the stop_token().
  class Worker {
   public:
    Worker() = default;
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    virtual ~Worker() = default;

    // The Exchange was destroyed before the end of the answer.
    virtual void on_close() = 0;
    // As Exchange::continuation(), of a watch.
    [[nodiscard]] virtual Continuation continuation() const = 0;
  };

  Reply(Answer& answer, Metrics& metrics) : answer_(&answer), metrics_(metrics) {}
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  // The guest still waits, and end() has not been called.
  [[nodiscard]] bool is_open() const { return answer_ != nullptr; }
  [[nodiscard]] bool has_head() const { return has_head_; }
  // Stopped when the Exchange is destroyed.
  [[nodiscard]] std::stop_token stop_token();
  // Frees the state shared by stop_tokens until the next is requested. No task may hold one now.
  void forget_stop_tokens() { stop_ = std::stop_source(std::nostopstate); }

  void set_verb(Verb verb) { verb_ = verb; }
  void understood(const RequestTarget& target, const Request& request);

  // Where the answer came from, for the metrics.
  enum class Source : std::uint8_t { Cache, Upstream };
  void progress(std::uint64_t bytes);
  void head(int status, http::Headers headers, Source source);
  void head_json(int status, Source source);
  void piece(Piece piece);
  void bookmark(std::string line);
  void end();
  // A whole answer: head, a Status and end.
  void refuse(const Refusal& refusal, Source source = Source::Cache);

  // As Exchange::continuation().
  [[nodiscard]] std::optional<Continuation> continuation() const;

  // Called when the Exchange is destroyed.
  void close();
  // Null: no worker. `worker` is notified at most once, and not after end().
  void set_worker(Worker* worker) { worker_ = worker; }

 private:
  Answer* answer_;
  Metrics& metrics_;
  Worker* worker_ = nullptr;
  std::stop_source stop_{std::nostopstate};  // No state until a token is requested.
  Verb verb_ = Verb::Other;
  bool has_head_ = false;
};

}  // namespace hangar::gateway
