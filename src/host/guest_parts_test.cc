#include "host/guest_parts.h"

#include "domains/guest_processes.h"
#include "host/config.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace hangar::host {
namespace {

bool has_zygote(domains::Isolation isolation, std::vector<Feature> features) {
  Config config;
  config.guest_isolation = isolation;
  config.guest_program = "/bin/true";
  config.features = std::move(features);
  const auto zygote = start_zygote(config);
  EXPECT_TRUE(zygote.has_value()) << zygote.error().message();
  return zygote->has_value();
}

TEST(GuestParts, HaveGuestProcessesWhereverFlightsRun) {
  for (const Feature feature : {Feature::Airways, Feature::Flights})
    EXPECT_TRUE(has_zygote(domains::Isolation::Namespace, {feature}));

  EXPECT_FALSE(has_zygote(domains::Isolation::None, {Feature::Airways, Feature::Flights}));
  EXPECT_FALSE(has_zygote(domains::Isolation::Namespace, {Feature::Operators}));
}

}  // namespace
}  // namespace hangar::host
