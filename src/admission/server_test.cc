#include "admission/server.h"

#include "admission/certificate.h"
#include "admission/review.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "http/server.h"
#include "io/exception.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::admission {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kReview =
    R"({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u1",
    "operation": "CREATE", "object": {"metadata": {"name": "a"}}}})";

class AdmissionServerTest : public ::testing::Test {
 protected:
  AdmissionServerTest() {
    server_.emplace(main_, metrics_, Log());
    server_->review_at("/validations/", [this](Review review, std::string name, std::stop_token) {
      return review_on_main(std::move(review), std::move(name));
    });
    server_->convert_at("/convert/", [this](std::string body, std::string, std::stop_token) {
      return convert_on_main(std::move(body));
    });
    const Result<KeyPair> authority = make_authority(io::Loop::wall_now());
    const Result<KeyPair> own = issue(*authority, {"127.0.0.1"}, io::Loop::wall_now());
    authority_pem_ = authority->certificate_pem;
    tls_ = {.certificate_pem = own->certificate_pem, .key_pem = own->key_pem};
    const Result<> listening = server_->listen("127.0.0.1:0", tls_);
    EXPECT_TRUE(listening.has_value()) << listening.error().message();
  }
  ~AdmissionServerTest() override {
    io::run_to_end(main_, io::contained(server_->stop())).value();
    server_.reset();
    main_.run_until([this] { return main_.spawned_count() == 0; });
  }

  // The answer to a client with its own loop. The main loop does not run meanwhile.
  Result<http::Response> ask(std::string method, std::string_view path, std::string body = {}) {
    io::Loop loop;
    http::Client client(loop);
    return io::run_to_end(
        loop, client.send({.method = std::move(method),
                           .url = fmt::format("https://127.0.0.1:{}{}", server_->port(), path),
                           .body = std::move(body),
                           .transport = std::make_shared<http::Transport>(
                               http::Transport{.ca_pem = authority_pem_, .direct = true})},
                          {}));
  }
  // The same while the main loop runs.
  Result<http::Response> ask_while_main_runs(std::string method, std::string_view path,
                                             std::string body = {}) {
    std::optional<Result<http::Response>> answer;
    std::atomic<bool> done = false;
    std::thread client([&] {
      answer.emplace(ask(std::move(method), path, std::move(body)));
      done = true;
      main_.post([] {});
    });
    main_.run_until([&] { return done.load(); });
    client.join();
    return *std::move(answer);
  }

  io::Loop main_;
  Metrics metrics_;
  std::optional<Server> server_;
  http::ServerOptions::Tls tls_;
  std::string authority_pem_;
  std::vector<std::string> reviewed_;

 private:
  io::Task<Result<Decision>> review_on_main(Review review, std::string name) {
    EXPECT_TRUE(main_.is_current());
    reviewed_.push_back(name + " " + review.uid);
    co_return Decision{.warnings = {"seen"}};
  }
  io::Task<Result<std::string>> convert_on_main(std::string body) {
    EXPECT_TRUE(main_.is_current());
    if (body.empty()) co_return fail(ErrorKind::InvalidInput, "nothing to convert");
    co_return "converted " + body;
  }
};

TEST_F(AdmissionServerTest, ReviewsOnTheMainLoop) {
  const auto answer =
      ask_while_main_runs("POST", "/validations/backends.example.com", std::string(kReview));

  ASSERT_TRUE(answer.has_value()) << answer.error().message();
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body, HasSubstr(R"("uid":"u1")"));
  EXPECT_THAT(answer->body, HasSubstr("seen"));
  EXPECT_EQ(reviewed_, std::vector<std::string>{"backends.example.com u1"});
}

TEST_F(AdmissionServerTest, ConvertsOnTheMainLoop) {
  const auto converted = ask_while_main_runs("POST", "/convert/a", "text");
  const auto refused = ask_while_main_runs("POST", "/convert/a");

  ASSERT_TRUE(converted && refused);
  EXPECT_EQ(converted->body, "converted text");
  EXPECT_EQ(refused->status, 400);
}

TEST_F(AdmissionServerTest, NeedsNoMainLoopForProbesAndForWhatIsNoReview) {
  for (const auto& [method, path, status] :
       {std::tuple("GET", "/live", 200), std::tuple("GET", "/ready", 200),
        std::tuple("GET", "/validations/as.b", 405), std::tuple("GET", "/nowhere", 404),
        std::tuple("POST", "/validations/resources", 404),
        std::tuple("POST", "/validations/as.b", 400)}) {
    const auto answer = ask(method, path, "no review");
    ASSERT_TRUE(answer.has_value()) << path << ": " << answer.error().message();
    EXPECT_EQ(answer->status, status) << path;
  }
  server_->leave();
  EXPECT_EQ(ask("GET", "/ready")->status, 503);
}

TEST_F(AdmissionServerTest, RefusesAnObjectThatIsNestedTooDeepWithWords) {
  constexpr std::size_t kDepth = 200;
  std::string body(kReview);
  body.replace(body.find(R"("a")"), 3,
               R"("a"}, "spec": {"a": )" + std::string(kDepth, '[') + std::string(kDepth, ']'));

  const auto answer = ask("POST", "/validations/backends.example.com", std::move(body));

  ASSERT_TRUE(answer.has_value()) << answer.error().message();
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body, HasSubstr(R"("uid":"u1","allowed":false)"));
  EXPECT_THAT(answer->body, HasSubstr(R"("code":422)"));
  EXPECT_THAT(answer->body, HasSubstr("nested more than 128 levels deep"));
  EXPECT_THAT(reviewed_, testing::IsEmpty());
}

TEST_F(AdmissionServerTest, RefusesInTimeWhatTheMainLoopDoesNotAnswer) {
  const auto answer = ask("POST", "/validations/as.b?timeout=100ms", std::string(kReview));

  ASSERT_TRUE(answer.has_value()) << answer.error().message();
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body, HasSubstr(R"("allowed":false)"));
  EXPECT_THAT(answer->body, HasSubstr("the host is busy"));
}

TEST_F(AdmissionServerTest, ShowsTheNewCertificateAndKeepsTheOldOneForOneThatIsNone) {
  const Result<KeyPair> authority = make_authority(io::Loop::wall_now());
  const Result<KeyPair> own = issue(*authority, {"127.0.0.1"}, io::Loop::wall_now());

  EXPECT_FALSE(server_->listen("", {.certificate_pem = "none", .key_pem = "none"}).has_value());
  EXPECT_TRUE(ask("GET", "/live").has_value());
  ASSERT_TRUE(
      server_->listen("", {.certificate_pem = own->certificate_pem, .key_pem = own->key_pem})
          .has_value());
  EXPECT_FALSE(ask("GET", "/live").has_value()) << "the old authority has not signed it";
  authority_pem_ = authority->certificate_pem;
  EXPECT_TRUE(ask("GET", "/live").has_value());
}

TEST_F(AdmissionServerTest, IsSilentOnceItHasStopped) {
  io::run_to_end(main_, io::contained(server_->stop())).value();

  EXPECT_FALSE(ask("GET", "/live").has_value());
}

}  // namespace
}  // namespace hangar::admission
