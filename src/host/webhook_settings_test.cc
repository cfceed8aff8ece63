#include "host/webhook_settings.h"

#include "admission/webhooks.h"
#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hangar::host {
namespace {

using testing::HasSubstr;

admission::Webhooks::Options with_service() {
  admission::Webhooks::Options options{.bind_address = ":9443"};
  options.reach = *admission::parse_service("hangar-system/hangar-webhooks");
  return options;
}

TEST(WebhookSettings, TheLeadersServiceNeedsTheAddressOfItsEndpoint) {
  admission::Webhooks::Options options = with_service();
  EXPECT_TRUE(check(options).has_value());

  options.leader.service = *admission::parse_service("hangar-system/hangar-operators");
  const Result<> refused = check(options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("webhook-leader-address"));

  options.leader.address = "10.0.0.7";
  EXPECT_TRUE(check(options).has_value());
}

TEST(WebhookSettings, AnAddressAloneIsNothing) {
  // The chart gives it to each pod.
  admission::Webhooks::Options options;
  options.leader.address = "10.0.0.7";
  EXPECT_TRUE(check(options).has_value());
}

}  // namespace
}  // namespace hangar::host
