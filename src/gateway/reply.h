// The answer to one request, for as long as somebody waits for it.
#pragma once

#include "base/metrics.h"
#include "gateway/documents.h"
#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "http/client.h"

#include <cstdint>
#include <stop_token>
#include <string>

namespace hangar::gateway {

// Calls the Answer in the right order, and not at all once its Exchange is gone. Shared by all that
// work on the answer, so that each of them may find out late. Loop thread only.
class Reply {
 public:
  // Who works on the answer for as long as it takes, and not as a task that has the stop_token().
  class Worker {
   public:
    Worker() = default;
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    virtual ~Worker() = default;

    // The Exchange went before the end was told.
    virtual void on_close() = 0;
  };

  Reply(Answer& answer, Metrics& metrics) : answer_(&answer), metrics_(metrics) {}
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  // Somebody waits, and the end has not been told.
  [[nodiscard]] bool is_open() const { return answer_ != nullptr; }
  [[nodiscard]] bool has_head() const { return has_head_; }
  // Stopped when nobody waits any more.
  [[nodiscard]] std::stop_token stop_token();
  // No task has a stop_token() now: what they had in common is not kept until there is the next.
  void forget_stop_tokens() { stop_ = std::stop_source(std::nostopstate); }

  void set_verb(Verb verb) { verb_ = verb; }
  void understood(const RequestTarget& target, const Request& request);

  // Where the answer is from, for the metrics.
  enum class Source : std::uint8_t { Cache, Upstream };
  void progress(std::uint64_t bytes);
  void head(int status, http::Headers headers, Source source);
  void head_json(int status, Source source);
  void piece(Piece piece);
  void bookmark(std::string line);
  void end();
  // All of it: a Status.
  void refuse(const Refusal& refusal, Source source = Source::Cache);

  // The Exchange is gone.
  void close();
  // Null for none. `worker` is told once at most, and not after the end.
  void set_worker(Worker* worker) { worker_ = worker; }

 private:
  Answer* answer_;
  Metrics& metrics_;
  Worker* worker_ = nullptr;
  std::stop_source stop_{std::nostopstate};  // Without a state until somebody asks for it.
  Verb verb_ = Verb::Other;
  bool has_head_ = false;
};

}  // namespace hangar::gateway
