#include "ops/log_sink.h"

#include "base/log.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

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
