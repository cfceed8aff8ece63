#include "operators/pod_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hangar::operators {
namespace {

using testing::Contains;
using testing::Pair;

constexpr auto kAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";

TEST(PodView, IsWhatAPodHas) {
  const auto view =
      pod_view({.namespace_ = "team", .name = "memo", .cluster_ca = "-----BEGIN CERTIFICATE-----"});

  EXPECT_THAT(view.environment, Contains("KUBERNETES_SERVICE_HOST=kubernetes.default.svc"));
  EXPECT_THAT(view.environment, Contains("KUBERNETES_SERVICE_PORT=443"));
  EXPECT_THAT(view.environment, Contains("POD_NAMESPACE=team"));
  EXPECT_THAT(view.environment, Contains("HOSTNAME=memo"));
  EXPECT_THAT(view.files, Contains(Pair(std::string(kAccount) + "namespace", "team")));
  EXPECT_THAT(view.files,
              Contains(Pair(std::string(kAccount) + "ca.crt", "-----BEGIN CERTIFICATE-----")));
  EXPECT_THAT(view.files,
              Contains(Pair(std::string(kAccount) + "token", std::string(kTokenOfGuests))));
}

TEST(PodView, HasNoFileOfACertificateThatNobodyKnows) {
  EXPECT_FALSE(pod_view({.namespace_ = "team", .name = "memo"})
                   .files.contains(std::string(kAccount) + "ca.crt"));
}

TEST(PodView, HasATokenThatIsNotACredential) {
  // A JSON Web Token is three parts with dots between them, a static token has no spaces.
  EXPECT_FALSE(kTokenOfGuests.contains('.'));
  EXPECT_TRUE(kTokenOfGuests.contains(' '));
}

}  // namespace
}  // namespace hangar::operators
