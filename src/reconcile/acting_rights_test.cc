#include "reconcile/acting_rights.h"

#include "base/result.h"
#include "kube/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hangar::reconcile {
namespace {

using testing::HasSubstr;

const kube::Identity kMirror = kube::service_account("team", "mirror");

Result<> denied(const char* message) {
  return fail(ErrorKind::Denied, message);
}

TEST(JudgeImpersonation, AnAnswerIsTheRight) {
  EXPECT_TRUE(judge_impersonation(kMirror, "team", {}));
}

TEST(JudgeImpersonation, ARefusalOfOurselvesNamesTheCommandThatGivesTheRight) {
  const Result<> verdict = judge_impersonation(
      kMirror, "team",
      denied(
          R"(serviceaccounts "mirror" is forbidden: User "system:serviceaccount:h:hangar" cannot )"
          R"(impersonate resource "serviceaccounts" in API group "" in the namespace "team")"));

  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().kind(), ErrorKind::Denied);
  EXPECT_EQ(verdict.error().reason(), kNamespaceNotAllowed);
  EXPECT_THAT(verdict.error().message(),
              HasSubstr("hangar may not act in namespace team: run hangar tenant allow team"));
  EXPECT_THAT(verdict.error().message(), HasSubstr("cannot impersonate"));
}

TEST(JudgeImpersonation, ARefusalOfTheServiceAccountMeansThatWeActAsIt) {
  EXPECT_TRUE(judge_impersonation(
      kMirror, "team",
      denied(R"(forbidden: User "system:serviceaccount:team:mirror" cannot get path "/version")")));
}

TEST(JudgeImpersonation, ANameThatOursBeginsWithIsNotOurs) {
  EXPECT_FALSE(judge_impersonation(
      kMirror, "team",
      denied(
          R"(forbidden: User "system:serviceaccount:team:mirror2" cannot get path "/version")")));
}

TEST(JudgeImpersonation, AServerThatDoesNotAnswerSaysNothingAboutTheRight) {
  const Result<> verdict =
      judge_impersonation(kMirror, "team", fail(ErrorKind::Unavailable, "no route to host"));

  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().kind(), ErrorKind::Unavailable);
}

}  // namespace
}  // namespace hangar::reconcile
