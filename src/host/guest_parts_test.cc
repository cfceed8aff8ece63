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
  const auto zygote = start_host_zygote(config);
  EXPECT_TRUE(zygote.has_value()) << zygote.error().message();
  return zygote->has_value();
}

// A command may read the settings of a host, but ignores their features.
TEST(GuestParts, HaveGuestProcessesForACommandWhateverTheFeatures) {
  Config config;
  config.guest_isolation = domains::Isolation::Namespace;
  config.guest_program = "/bin/true";
  config.features = {Feature::Nodes};

  const auto zygote = start_zygote(config);

  ASSERT_TRUE(zygote.has_value()) << zygote.error().message();
  EXPECT_TRUE(zygote->has_value());
}

TEST(GuestParts, HaveGuestProcessesWhereverGuestsRun) {
  for (const Feature feature :
       {Feature::Airways, Feature::Flights, Feature::Operators, Feature::Workflows})
    EXPECT_TRUE(has_zygote(domains::Isolation::Namespace, {feature}));

  EXPECT_FALSE(has_zygote(domains::Isolation::None, {Feature::Airways, Feature::Flights}));
  EXPECT_FALSE(has_zygote(domains::Isolation::Namespace, {Feature::Nodes}));
}

}  // namespace
}  // namespace hangar::host
