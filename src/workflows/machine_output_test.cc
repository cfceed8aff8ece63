#include "workflows/machine_output.h"

#include "base/log.h"
#include "base/time.h"
#include "output/namespace_allowances.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::workflows {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const kube::ObjectKey kFirst{.namespace_ = "strangers", .name = "first"};
const kube::ObjectKey kSecond{.namespace_ = "strangers", .name = "second"};
const kube::ObjectKey kOther{.namespace_ = "team", .name = "other"};

// Each line as "message value value ...".
class Lines final : public LogSink {
 public:
  void write(LogLevel /*level*/, std::string_view /*component*/, std::string_view message,
             std::span<const LogField> fields) override {
    std::string& line = lines.emplace_back(message);
    for (const LogField& field : fields) {
      if (const auto* const text = std::get_if<std::string>(&field.value)) line += " " + *text;
      if (const auto* const number = std::get_if<std::int64_t>(&field.value))
        line += fmt::format(" {}", *number);
    }
  }

  std::vector<std::string> lines;
};

class MachineOutputTest : public testing::Test {
 protected:
  MachineOutputTest() {
    allowances_.limit_namespaces(
        [](const std::string& name) -> std::optional<output::NamespaceAllowances::Bound> {
          if (name != "strangers") return std::nullopt;
          return output::NamespaceAllowances::Bound{.bytes_per_second = 100,
                                                    .set_by = "TenantPolicy p"};
        });
  }

  Lines sink_;
  output::NamespaceAllowances allowances_;
  MachineOutput output_{allowances_, Log(sink_, "workflows")};
  Instant now_ = Instant() + std::chrono::hours(1);
};

TEST_F(MachineOutputTest, GoesToTheLog) {
  output_.keep(kOther, "hello\nworld\n", now_);

  EXPECT_THAT(sink_.lines, ElementsAre("a machine printed team other hello\nworld\n"));
}

TEST_F(MachineOutputTest, OfOneNamespaceSharesItsBoundAndSaysWhatIsDropped) {
  const std::string text(1000, '.');
  output_.keep(kFirst, text, now_);
  ASSERT_THAT(sink_.lines, SizeIs(1));

  output_.keep(kSecond, text, now_);
  ASSERT_THAT(sink_.lines, SizeIs(2));
  EXPECT_THAT(sink_.lines[1], HasSubstr("output of machines was dropped strangers 1001"));
  EXPECT_THAT(sink_.lines[1], HasSubstr("TenantPolicy p"));

  output_.keep(kOther, text, now_);
  ASSERT_THAT(sink_.lines, SizeIs(3));
  EXPECT_THAT(sink_.lines[2], HasSubstr("a machine printed team other"));
}

// A machine may print in each of any number of steps.
TEST_F(MachineOutputTest, ThatIsDroppedIsNoFloodEither) {
  const std::string text(1000, '.');
  for (int step = 0; step < 1000; ++step)
    output_.keep(kFirst, text, now_);
  EXPECT_THAT(sink_.lines, SizeIs(2)) << "what was kept, and that something was not";

  now_ += std::chrono::seconds(2);
  output_.keep(kFirst, text, now_);
  EXPECT_THAT(sink_.lines, SizeIs(3)) << "how much it was, and nothing that has no room";
}

}  // namespace
}  // namespace hangar::workflows
