#include "ops/log_sink.h"

#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace hangar::ops {
namespace {

std::string written(LogOptions options, const auto& write) {
  testing::internal::CaptureStderr();
  {
    const std::unique_ptr<LogSink> sink = make_log_sink(options);
    write(Log(*sink, "kube"));
  }
  return testing::internal::GetCapturedStderr();
}

TEST(LogSink, WritesOneJsonObjectALine) {
  const std::string text = written({}, [](const Log& log) {
    log.info("reconciled", {{"airway", "a.example"}, {"took_ms", 12}, {"ok", true}, {"load", 0.5}});
  });

  EXPECT_TRUE(text.starts_with(R"({"ts":"20)")) << text;
  EXPECT_TRUE(text.ends_with(
      R"(Z","level":"info","logger":"kube","msg":"reconciled","airway":"a.example","took_ms":12,"ok":true,"load":0.5})"
      "\n"))
      << text;
}

TEST(LogSink, NothingInAValueEndsTheLineOrTheString) {
  const std::string text = written({}, [](const Log& log) {
    log.error("guest said", {{"text", std::string("a\"b\\c\nd\x1b[31m\0e", 14)}});
  });

  EXPECT_NE(text.find(R"("text":"a\"b\\c\nd\u001b[31m\u0000e"})"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

TEST(LogSink, StaysReadableForJsonParsersAndHarmlessForTerminals) {
  const std::string text = written({}, [](const Log& log) {
    log.error("guest said", {{"text",
                              "\xff caf\xc3\xa9 \xc2\x9b"
                              "1m \x7f \xed\xa0\x80"}});
  });

  EXPECT_NE(text.find("\"text\":\"\ufffd café \\u009b1m \\u007f \ufffd\ufffd\ufffd\"}"),
            std::string::npos)
      << text;
}

// Replaces standard error from construction to destruction.
class ErrorPipe {
 public:
  ErrorPipe() : before_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    ::dup2(ends_[1], STDERR_FILENO);
    ::close(ends_[1]);
  }
  ErrorPipe(const ErrorPipe&) = delete;
  ErrorPipe& operator=(const ErrorPipe&) = delete;
  ~ErrorPipe() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    close_reader();
  }
  void close_reader() {
    if (ends_[0] >= 0) ::close(std::exchange(ends_[0], -1));
  }
  [[nodiscard]] std::string read_ready() const {
    std::string text;
    std::array<char, 4096> buffer{};
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    for (ssize_t count = 0; (count = ::read(ends_[0], buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(count));
    return text;
  }

 private:
  int before_;
  std::array<int, 2> ends_{-1, -1};
};

TEST(LogSink, SurvivesAReaderThatHasGone) {
  const auto sink = make_log_sink({});
  ErrorPipe pipe;
  pipe.close_reader();

  sink->write(LogLevel::Info, "kube", "into the void", {});
}

TEST(LogSink, WaitsForNoReaderAndSaysWhatWasLost) {
  const auto sink = make_log_sink({});
  const std::string big(10'000, 'x');
  std::string before;
  std::string after;
  {
    const ErrorPipe pipe;
    // Far more than a pipe holds.
    for (int line = 0; line < 100; ++line)
      sink->write(LogLevel::Info, "kube", big, {});
    before = pipe.read_ready();
    sink->write(LogLevel::Info, "kube", "reading again", {});
    after = pipe.read_ready();
  }

  EXPECT_LT(before.size(), 500'000U);
  EXPECT_NE(after.find(" log lines lost: nobody read them)\n{"), std::string::npos) << after;
  EXPECT_TRUE(after.ends_with("\"msg\":\"reading again\"}\n")) << after;
  EXPECT_TRUE(before.ends_with('\n') || after.starts_with('\n')) << after;
}

TEST(LogSink, DropsWhatIsBelowItsLevel) {
  const std::string text = written({.level = LogLevel::Warning}, [](const Log& log) {
    log.debug("no");
    log.info("no");
    log.warning("yes");
  });

  EXPECT_EQ(text.find("no"), std::string::npos);
  EXPECT_NE(text.find("yes"), std::string::npos);
}

TEST(LogSink, TheConsoleFormIsForPeople) {
  const std::string text =
      written({.format = LogFormat::Console}, [](const Log& log) { log.info("hi", {{"n", 1}}); });

  EXPECT_TRUE(text.ends_with(" info  kube       hi  n=1\n")) << text;
}

}  // namespace
}  // namespace hangar::ops
