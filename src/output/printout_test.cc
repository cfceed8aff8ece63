#include "output/printout.h"

#include "base/limits.h"
#include "base/log.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "output/limits.h"
#include "output/log_files.h"
#include "output/log_writer.h"
#include "output/namespace_allowances.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
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
  const std::string full(limits::kPrintedLineBytesMax, 'x');
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

TEST(Printout, KeepsNothingOfOneTurnBehindALineThatHadNoRoom) {
  const wasm::TemporaryDirectory directory;
  io::Loop loop;
  const LogFiles logs(directory.path());
  LogWriter writer(loop, logs, Log());
  const Log log;
  const LogFiles::Owner owner{.key = {"ns", "it"}, .uid = "1"};
  Printout printout({.loop = loop, .files = writer, .log = log}, owner, 100, "the bound");
  const std::string large(500, '.');

  printout.keep(
      lines_of("stdout", "first\n" + large + "\n" + large + "\n" + std::string(1000, '\n')), 0);
  EXPECT_TRUE(io::run_to_end(loop, flushed(writer)));

  const std::string text = logs.read(owner.key).value_or("");
  EXPECT_THAT(text, HasSubstr("stdout first\n"));
  EXPECT_THAT(text, HasSubstr("[1501 more bytes were dropped: the bound]"));
}

TEST(Printout, GuestsOfOneNamespaceShareItsBound) {
  const wasm::TemporaryDirectory directory;
  io::Loop loop;
  const LogFiles logs(directory.path());
  LogWriter writer(loop, logs, Log());
  writer.allowances().limit_namespaces(
      [](const std::string& name) -> std::optional<NamespaceAllowances::Bound> {
        if (name != "strangers") return std::nullopt;
        return NamespaceAllowances::Bound{.bytes_per_second = 100, .set_by = "TenantPolicy p"};
      });
  const Log log;
  const Printout::Sinks sinks{.loop = loop, .files = writer, .log = log};
  const LogFiles::Owner first{.key = {"strangers", "first"}, .uid = "1"};
  const LogFiles::Owner second{.key = {"strangers", "second"}, .uid = "2"};
  const LogFiles::Owner other{.key = {"team", "other"}, .uid = "3"};
  const std::string text(500, '.');

  for (const LogFiles::Owner& owner : {first, second, other}) {
    Printout printout(sinks, owner, limits::kMiB, "the guest's bound");
    printout.keep(lines_of("stdout", text), 0);
    EXPECT_TRUE(io::run_to_end(loop, flushed(writer)));
  }

  EXPECT_THAT(logs.read(first.key).value_or(""), HasSubstr(text));
  EXPECT_THAT(logs.read(second.key).value_or(""),
              HasSubstr("[501 more bytes were dropped: guests of namespace strangers may print 100 "
                        "bytes a second together (TenantPolicy p)]"));
  EXPECT_THAT(logs.read(other.key).value_or(""), HasSubstr(text));
}

}  // namespace
}  // namespace hangar::output
