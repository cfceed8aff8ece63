#include "output/printout.h"

#include "base/limits.h"
#include "base/log.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "output/log_files.h"
#include "output/log_writer.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::output {
namespace {

using testing::HasSubstr;

std::vector<std::string> texts_of(std::string_view text) {
  std::vector<std::string> texts;
  for (const Printout::Line& line : lines_of("stderr", text))
    texts.emplace_back(line.text);
  return texts;
}

TEST(LinesOf, CutsATextAtItsLineEndsAndWhatIsTooLong) {
  EXPECT_TRUE(texts_of("").empty());
  EXPECT_EQ(texts_of("a\n\nb"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(texts_of("a\n"), (std::vector<std::string>{"a"}));
  const std::string full(limits::kOperatorLineBytesMax, 'x');
  EXPECT_EQ(texts_of(full + "\ny"), (std::vector<std::string>{full, "y"}));
  EXPECT_EQ(texts_of(full + "y"), (std::vector<std::string>{full, "y"}));
}

io::Task<bool> flushed(LogWriter& writer) {
  co_await writer.flush();
  co_return true;
}

TEST(Printout, KeepsWhatIsPrintedAndSaysWhatIsNot) {
  const wasm::TemporaryDirectory directory;
  io::Loop loop;
  const LogFiles logs(directory.path());
  LogWriter writer(loop, logs, Log());
  const Log log;
  const LogFiles::Owner owner{.key = {"ns", "it"}, .uid = "1", .resource = "sites.examples.com"};
  constexpr std::uint64_t kRate = 1024;
  Printout printout({.loop = loop, .files = writer, .log = log}, owner, kRate, "the bound");

  printout.keep(lines_of("stderr", "hello"), 0);
  const std::string flood(8 * kRate, '.');
  printout.keep(lines_of("stderr", flood + "\n" + flood), 0);
  EXPECT_TRUE(io::run_to_end(loop, flushed(writer)));

  const std::string text = logs.read(owner.key, owner.resource).value_or("");
  EXPECT_THAT(text, HasSubstr("stderr hello\n"));
  EXPECT_THAT(text, HasSubstr("more bytes were dropped: the bound]"));
  EXPECT_LT(text.size(), flood.size() * 3 / 2);
  EXPECT_FALSE(printout.is_as_new());
}

}  // namespace
}  // namespace hangar::output
