#include "abi/statemachine/delays.h"

#include "abi/statemachine/limits.h"
#include "base/result.h"
#include "json/value.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace hangar::abi::statemachine {
namespace {

using testing::SizeIs;

// A machine in the state "a", which has so many delays.
std::string definition_with(std::size_t count) {
  json::Object after;
  for (std::size_t i = 1; i <= count; ++i) {
    after[fmt::format("{}", i)] =
        json::Array{json::Object{{"event", fmt::format("{}.{}.a", kDelayPrefix, i)}}};
  }
  return json::dump(json::Object{{"states", json::Object{{"a", json::Object{{"after", after}}}}}});
}

// The host compares each of them with every timer of the workflow.
TEST(DelaysOf, AMachineAreAsManyAsCanRun) {
  const Result<std::vector<Delay>> most =
      delays_of(definition_with(limits::kMachineDelaysMax), R"("a")");
  ASSERT_TRUE(most) << most.error().message();
  EXPECT_THAT(*most, SizeIs(limits::kMachineDelaysMax));

  const Result<std::vector<Delay>> more =
      delays_of(definition_with(limits::kMachineDelaysMax + 1), R"("a")");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().kind(), ErrorKind::LimitExceeded);
}

}  // namespace
}  // namespace hangar::abi::statemachine
