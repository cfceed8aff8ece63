#include "workflows/machine_problem.h"

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/cache_charges.h"
#include "workflows/ledger.h"
#include "workflows/verdict.h"
#include "workflows/workflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hangar::workflows {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kMigrate =
    "kubectl annotate statefulworkflow orders -n team workflows.example.com/migrate=";

Workflow in_config_map() {
  Workflow workflow;
  workflow.key = {.namespace_ = "team", .name = "orders"};
  workflow.config_map = "machine";
  workflow.is_in_config_maps = true;
  return workflow;
}

Workflow from_a_url() {
  Workflow workflow;
  workflow.key = {.namespace_ = "team", .name = "orders"};
  return workflow;
}

Ledger begun() {
  Ledger ledger;
  ledger.state = R"({"value":"idle"})";
  ledger.sha256 = "abc";
  return ledger;
}

TEST(ModuleProblem, WaitsForTheConfigMapsThatNobodyMadeYet) {
  Workflow workflow = in_config_map();
  workflow.plugin_config_map = "javy";
  const Error missing = Error(ErrorKind::NotFound, "not found").with_reason("NotFound");

  const Problem problem = module_problem(workflow, Ledger(), missing);

  EXPECT_EQ(problem.reason, "WaitingForModule");
  EXPECT_TRUE(problem.is_waiting);
  EXPECT_THAT(problem.message,
              HasSubstr("create the ConfigMap machine and the ConfigMap javy in namespace team"));
}

TEST(RefusedModuleProblem, NamesThePolicyAndTheMigration) {
  const Error refused =
      Error(ErrorKind::Denied, "TenantPolicy strict does not allow the module oci://a/b")
          .with_reason("RefusedByPolicy");

  const Problem problem = refused_module_problem(from_a_url(), begun(), refused);

  EXPECT_EQ(problem.reason, "RefusedByPolicy");
  EXPECT_FALSE(problem.is_waiting);
  EXPECT_THAT(problem.message, AllOf(HasSubstr("sha256:abc"), HasSubstr("TenantPolicy strict"),
                                     HasSubstr(kMigrate)));
}

TEST(ModuleProblem, NamesThePolicyThatLeavesNoDiskForIt) {
  const Error refused = budget::too_little_disk(
      {.level = budget::Shortage::Level::Tenant, .limited_by = "TenantPolicy small"});
  for (const Ledger& ledger : {Ledger(), begun()}) {
    const Problem problem = module_problem(in_config_map(), ledger, refused);

    EXPECT_EQ(problem.reason, "RefusedByPolicy");
    EXPECT_THAT(problem.message,
                AllOf(HasSubstr("TenantPolicy small"), HasSubstr("hangar retries")));
  }
}

TEST(ModuleProblem, TellsWhatIsMissingInAConfigMapFromOneThatIsMissing) {
  const Problem problem = module_problem(in_config_map(), Ledger(),
                                         Error(ErrorKind::NotFound, "it has no key machine.js"));

  EXPECT_EQ(problem.reason, "ModuleInvalid");
  EXPECT_FALSE(problem.is_waiting);
  EXPECT_THAT(problem.message, AllOf(HasSubstr("it has no key machine.js"),
                                     HasSubstr("Fix the machine in the ConfigMap machine")));
}

TEST(ModuleProblem, ASourceThatIsClosedIsAskedAgain) {
  for (const ErrorKind kind : {ErrorKind::Unavailable, ErrorKind::Denied}) {
    const Error closed(kind, "connection refused");

    const Problem fresh = module_problem(from_a_url(), Ledger(), closed);
    const Problem running = module_problem(from_a_url(), begun(), closed);

    EXPECT_EQ(fresh.reason, "ModuleUnavailable");
    EXPECT_THAT(fresh.message, HasSubstr("the workflow starts when the module can be fetched"));
    EXPECT_EQ(running.reason, "ModuleUnavailable");
    EXPECT_THAT(running.message, AllOf(HasSubstr("the module sha256:abc that this workflow is"),
                                       HasSubstr("hangar retries"), Not(HasSubstr(kMigrate))));
  }
}

TEST(ModuleProblem, AModuleThatIsGoneIsPutBackOrMigratedFrom) {
  const Error missing = Error(ErrorKind::NotFound, "not found").with_reason("NotFound");

  const Problem problem = module_problem(in_config_map(), begun(), missing);

  EXPECT_EQ(problem.reason, "ModuleGone");
  EXPECT_FALSE(problem.is_waiting) << "it has begun: another module is not what it waits for";
  EXPECT_THAT(problem.message,
              AllOf(HasSubstr("sha256:abc"), HasSubstr("restore it"), HasSubstr(kMigrate)));
}

TEST(MachineProblem, HasAReasonForEachWayToFail) {
  struct Case {
    ErrorKind kind;
    const char* reason;
    const char* words;
  };
  for (const Case& one :
       {Case{ErrorKind::GuestFault, "MachineFailed", "it failed: no luck"},
        Case{ErrorKind::LimitExceeded, "LimitExceeded", "an endless loop"},
        Case{ErrorKind::InvalidInput, "AnswerInvalid", "its answer is not valid: no luck"}}) {
    SCOPED_TRACE(one.reason);

    const Problem problem =
        machine_problem(in_config_map(), begun(), Error(one.kind, "no luck"), "asked about GO");

    EXPECT_EQ(problem.reason, one.reason);
    EXPECT_THAT(problem.message, AllOf(testing::StartsWith("asked about GO: "),
                                       HasSubstr(one.words), HasSubstr(kMigrate)));
  }
}

TEST(MachineProblem, BlamesNoMachineThatCouldNotBeAsked) {
  const Problem problem = machine_problem(
      in_config_map(), begun(), Error(ErrorKind::Unavailable, "no luck"), "asked about GO");

  EXPECT_EQ(problem.reason, "MachineUnavailable");
  EXPECT_THAT(problem.message, AllOf(HasSubstr("asked about GO: no answer: no luck"),
                                     HasSubstr("hangar retries"), Not(HasSubstr(kMigrate))));
}

TEST(MachineProblem, SaysHowAWorkflowThatHasNotBegunBegins) {
  const Error error(ErrorKind::GuestFault, "no luck");

  EXPECT_THAT(machine_problem(in_config_map(), Ledger(), error, "asked").message,
              AllOf(HasSubstr("in the ConfigMap machine"), Not(HasSubstr(kMigrate))));
  EXPECT_THAT(machine_problem(from_a_url(), Ledger(), error, "asked").message,
              HasSubstr("hangar fetches it again periodically"));
}

TEST(MachineProblem, IsTriedAgainOnlyWhereNobodyWouldTell) {
  EXPECT_TRUE(may_be_mended_unseen(from_a_url(), Ledger()));
  EXPECT_FALSE(may_be_mended_unseen(in_config_map(), Ledger())) << "it is watched";
  EXPECT_FALSE(may_be_mended_unseen(from_a_url(), begun())) << "it keeps its machine";
}

TEST(MachineRetry, IsOfAMachineThatCouldNotBeAskedOrMayBeMendedUnseen) {
  const Error lost(ErrorKind::Unavailable, "no answer");
  const Error wrong(ErrorKind::GuestFault, "it trapped");

  EXPECT_EQ(machine_retry(in_config_map(), begun(), lost).kind(), ErrorKind::Unavailable);
  EXPECT_EQ(machine_retry(from_a_url(), Ledger(), wrong).kind(), ErrorKind::Unavailable);
  // A workflow that has started keeps its machine, and a ConfigMap is watched.
  EXPECT_EQ(machine_retry(from_a_url(), begun(), wrong).kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(machine_retry(in_config_map(), Ledger(), wrong).kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(machine_retry(in_config_map(), Ledger(), wrong).message(), "it trapped");
}

}  // namespace
}  // namespace hangar::workflows
