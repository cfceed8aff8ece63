#include "tracing/exporter.h"

#include "base/log.h"
#include "base/metrics.h"
#include "http/client.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"
#include "tracing/limits.h"
#include "tracing/span.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::tracing {
namespace {

using namespace std::chrono_literals;

// Used in place of a status: the collector does not answer.
constexpr int kHangs = 0;

class ExporterTest : public testing::Test {
 protected:
  // A collector that gives the answers in turn, and the last one for ever.
  std::string collector(std::vector<int> statuses) {
    statuses_ = std::move(statuses);
    server_ = std::make_unique<http::Server>(
        loop_, http::ServerOptions{},
        [this](http::ServerRequest request) { return answer(std::move(request)); }, Log());
    EXPECT_TRUE(server_->start());
    return fmt::format("http://127.0.0.1:{}", server_->port());
  }
  // The limit of a request is short only where it must be reached: a busy machine may need long.
  Exporter& exporter(std::string url, std::chrono::milliseconds send_max = 60s) {
    exporter_.emplace(loop_, http_,
                      Exporter::Options{.url = std::move(url),
                                        .origin = {.version = "1", .instance = {}},
                                        .batch_every = 1ms,
                                        .again = 1ms,
                                        .send_max = send_max},
                      metrics_, Log());
    return *exporter_;
  }
  ~ExporterTest() override {
    if (exporter_) finish(exporter_->stop());
    stop_.request_stop();
    if (server_) finish(server_->stop(1s));
  }
  void finish(io::Task<void> task) {
    bool is_done = false;
    loop_.spawn([](io::Task<void> inner, bool& done) -> io::Task<void> {
      co_await std::move(inner);
      done = true;
    }(std::move(task), is_done));
    loop_.run_until([&is_done] { return is_done; });
  }
  [[nodiscard]] double sent() { return metrics_.counter("hangar_traces_spans_total", "").value(); }
  [[nodiscard]] double lost() { return metrics_.counter("hangar_traces_lost_total", "").value(); }

  io::Loop loop_;
  Metrics metrics_;
  http::Client http_{loop_};
  std::vector<http::ServerRequest> requests_;

 private:
  io::Task<http::Response> answer(http::ServerRequest request) {
    requests_.push_back(std::move(request));
    const int status = statuses_.front();
    if (statuses_.size() > 1) statuses_.erase(statuses_.begin());
    if (status == kHangs) (void)co_await loop_.sleep(std::chrono::hours(1), stop_.get_token());
    co_return http::Response{.status = status, .headers = {}, .body = {}};
  }

  std::vector<int> statuses_;
  std::stop_source stop_;
  std::unique_ptr<http::Server> server_;
  std::optional<Exporter> exporter_;
};

Span span_named(std::string name) {
  Span span;
  span.trace.fill(1);
  span.id.fill(2);
  span.name = std::move(name);
  return span;
}

}  // namespace

TEST_F(ExporterTest, SendsSpansTogether) {
  Exporter& one = exporter(collector({200}));
  one.add(span_named("first"));
  one.add(span_named("second"));
  loop_.run_until([this] { return sent() == 2; });

  ASSERT_EQ(requests_.size(), 1);
  EXPECT_EQ(requests_[0].method, "POST");
  EXPECT_EQ(requests_[0].path, "/v1/traces");
  EXPECT_EQ(http::find_header(requests_[0].headers, "content-type"), "application/x-protobuf");
  EXPECT_NE(requests_[0].body.find("first"), std::string::npos);
  EXPECT_NE(requests_[0].body.find("second"), std::string::npos);
}

TEST_F(ExporterTest, GoesOnAfterACollectorThatRefuses) {
  Exporter& one = exporter(collector({503, 200}));
  one.add(span_named("lost"));
  loop_.run_until([this] { return lost() == 1; });
  one.add(span_named("taken"));
  loop_.run_until([this] { return sent() == 1; });

  EXPECT_EQ(lost(), 1);
}

TEST_F(ExporterTest, GivesUpOnACollectorThatHangs) {
  Exporter& one = exporter(collector({kHangs}), 300ms);
  one.add(span_named("lost"));
  loop_.run_until([this] { return lost() == 1; });

  EXPECT_EQ(sent(), 0);
}

TEST_F(ExporterTest, HoldsNoMoreThanItsQueue) {
  Exporter& one = exporter(collector({kHangs}));
  for (std::size_t at = 0; at < kQueueMax + 10; ++at)
    one.add(span_named("one"));

  EXPECT_EQ(lost(), 10);
}

TEST_F(ExporterTest, SendsWhatWaitsBeforeItEnds) {
  Exporter& one = exporter(collector({200}));
  one.add(span_named("last"));
  finish(one.stop());

  EXPECT_EQ(sent(), 1);
  EXPECT_EQ(lost(), 0);
}

TEST_F(ExporterTest, EndsThoughTheCollectorHangs) {
  Exporter& one = exporter(collector({kHangs}));
  for (std::size_t at = 0; at < 3 * kBatchMax; ++at)
    one.add(span_named("lost"));
  finish(one.stop());

  EXPECT_EQ(sent(), 0);
  EXPECT_EQ(lost(), 3 * kBatchMax);
}

}  // namespace hangar::tracing
