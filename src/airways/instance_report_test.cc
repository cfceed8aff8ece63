#include "airways/instance_report.h"

#include "airways/conditions.h"
#include "json/yaml.h"
#include "reconcile/acting_rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {
namespace {

using reconcile::EventType;
using testing::AllOf;
using testing::HasSubstr;

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}

kube::ObjectPtr object(std::string_view text) {
  return kube::Object::make(json::dump(yaml(text))).value();
}

Error error(ErrorKind kind, std::string message = "it broke") {
  return {kind, std::move(message)};
}

const Result<> kWritten;
const Result<> kNotWritten = fail(ErrorKind::Unavailable, "no answer");

TEST(IsForPeople, OnlyWhatNoRepetitionRepairs) {
  for (const ErrorKind kind :
       {ErrorKind::InvalidInput, ErrorKind::Corrupt, ErrorKind::LimitExceeded}) {
    EXPECT_TRUE(is_for_people(error(kind))) << static_cast<int>(kind);
  }
  for (const ErrorKind kind : {ErrorKind::Unavailable, ErrorKind::Conflict, ErrorKind::Cancelled,
                               ErrorKind::Denied, ErrorKind::NotFound}) {
    EXPECT_FALSE(is_for_people(error(kind))) << static_cast<int>(kind);
  }
  EXPECT_TRUE(is_for_people(
      error(ErrorKind::Denied).with_reason(std::string(reconcile::kNamespaceNotAllowed))));
}

TEST(IsUntold, AnErrorWithoutRetryWhoseStatusWasNotWritten) {
  EXPECT_TRUE(is_untold(error(ErrorKind::InvalidInput), kNotWritten));
  EXPECT_FALSE(is_untold(error(ErrorKind::InvalidInput), kWritten));
  // It is retried, and reported then.
  EXPECT_FALSE(is_untold(error(ErrorKind::Unavailable), kNotWritten));
}

TEST(VerdictOnFailure, IsTheErrorUnlessItIsRetriedAtOnce) {
  EXPECT_EQ(verdict_on_failure(error(ErrorKind::GuestFault, "exit code 1")), failed("exit code 1"));
  EXPECT_EQ(verdict_on_failure(error(ErrorKind::Unavailable)), failed("it broke"));
  EXPECT_EQ(verdict_on_failure(error(ErrorKind::Conflict)), std::nullopt);
}

TEST(SettledAs, OnlyAReadyReleaseIsDeployedAndNotLookedAtAgain) {
  const Settled is_ready = settled_as(reconcile::ready());
  EXPECT_EQ(is_ready.verdict, deployed());
  EXPECT_EQ(is_ready.look_again, std::nullopt);

  const Settled waits = settled_as(reconcile::not_ready("2 of 3 replicas are available"));
  EXPECT_EQ(waits.verdict, waiting_for_ready());
  EXPECT_EQ(waits.look_again, Duration(kReadinessRecheck));
}

TEST(SettledAs, AFailedReleaseSaysWhyAndIsLookedAtAgain) {
  const Settled settled = settled_as({.state = Readiness::State::Failed, .why = "the Job failed"});

  EXPECT_EQ(settled.verdict.reason, kReasonError);
  EXPECT_EQ(settled.verdict.status, ConditionStatus::False);
  EXPECT_THAT(settled.verdict.message, HasSubstr("the Job failed"));
  EXPECT_EQ(settled.look_again, Duration(kReadinessRecheck)) << "a rule may be corrected";
}

TEST(StuckInRemoval, SaysWhyAndKeepsTheReason) {
  const Verdict verdict = stuck_in_removal(error(ErrorKind::Denied, "may not delete Jobs"));

  EXPECT_EQ(verdict.reason, kReasonTerminating);
  EXPECT_THAT(verdict.message,
              AllOf(HasSubstr("cannot remove the flight's resources: may not delete Jobs"),
                    HasSubstr("hangar retries")));
}

TEST(IsStuck, NotByWhatIsRepeatedAtOnce) {
  EXPECT_TRUE(is_stuck(error(ErrorKind::Denied)));
  EXPECT_TRUE(is_stuck(error(ErrorKind::Unavailable)));
  EXPECT_FALSE(is_stuck(error(ErrorKind::Conflict)));
  EXPECT_FALSE(is_stuck(error(ErrorKind::Cancelled)));
}

TEST(EventOf, AFailureNamesWhoSaysSo) {
  const auto event = event_of(failed("exit code 1"), kReasonReady, "flight: ");

  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::Warning);
  EXPECT_EQ(event->reason, "FlightFailed");
  EXPECT_EQ(event->message, "flight: exit code 1");
}

TEST(EventOf, ASuccessIsNormal) {
  const auto event = event_of(deployed(), kReasonInProgress, "flight: ");

  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, EventType::Normal);
  EXPECT_EQ(event->reason, "Deployed");
  EXPECT_EQ(event->message, deployed().message);
}

TEST(EventOf, NothingIsToldTwiceNorWhileItIsInProgress) {
  EXPECT_FALSE(event_of(deployed(), kReasonReady, "").has_value());
  // The message may change with each retry.
  EXPECT_FALSE(event_of(failed("another message"), kReasonError, "").has_value());
  EXPECT_FALSE(event_of(waiting_for_ready(), kReasonReady, "").has_value());
  EXPECT_FALSE(event_of(being_removed(), kReasonReady, "").has_value());
}

TEST(IsOvertaken, ByANewerSpecOfTheSameInstanceOnly) {
  const json::Value value = yaml("{metadata: {uid: u1, generation: 2}}");
  constexpr std::string_view kForm = "apiVersion: v1\nkind: A\nmetadata: ";
  const auto newest = [&](std::string_view metadata) {
    return object(std::string(kForm) + std::string(metadata));
  };

  EXPECT_TRUE(is_overtaken(value, newest("{name: a, uid: u1, generation: 3}").get()));
  EXPECT_FALSE(is_overtaken(value, newest("{name: a, uid: u1, generation: 2}").get()));
  // The watch lags behind the answer to our own write.
  EXPECT_FALSE(is_overtaken(value, newest("{name: a, uid: u1, generation: 1}").get()));
  EXPECT_FALSE(is_overtaken(value, newest("{name: a, uid: u2, generation: 3}").get()));
  EXPECT_FALSE(is_overtaken(value, nullptr));
}

TEST(WithoutStatus, IsTheSameAfterAWriteOfTheStatusAndNotAfterAnyOther) {
  const json::Value before = yaml(R"({metadata: {name: a, resourceVersion: '1', generation: 1},
    spec: {size: 1}})");
  const json::Value after = yaml(R"({metadata: {name: a, resourceVersion: '2', generation: 1,
    managedFields: [{manager: yoke}]}, spec: {size: 1}, status: {conditions: []}})");
  const json::Value labelled = yaml(R"({metadata: {name: a, resourceVersion: '2', generation: 1,
    labels: {a: b}}, spec: {size: 1}})");
  const json::Value respecified =
      yaml("{metadata: {name: a, resourceVersion: '2', generation: 2}, spec: {size: 2}}");

  EXPECT_EQ(without_status(before), without_status(after));
  EXPECT_NE(without_status(before), without_status(labelled));
  EXPECT_NE(without_status(before), without_status(respecified));
}

}  // namespace
}  // namespace hangar::airways
