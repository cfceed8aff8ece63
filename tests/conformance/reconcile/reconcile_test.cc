// Leases, Events and finalizers against a real API server.
#include "../kube/objects.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/client.h"
#include "kube/object.h"
#include "reconcile/election_machine.h"
#include "reconcile/event_recorder.h"
#include "reconcile/finalizer.h"
#include "reconcile/leader_elector.h"
#include "testing/control_plane.h"
#include "testing/session.h"
#include "testing/shared_control_plane.h"
#include "testing/wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hangar::reconcile {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ControlPlane;
using ::testing::HasSubstr;
using testing::Session;
using testing::wait;

void finish(io::Loop& loop, io::Task<void> task) {
  bool is_done = false;
  loop.spawn([](io::Task<void> inner, bool& done) -> io::Task<void> {
    co_await std::move(inner);
    done = true;
  }(std::move(task), is_done));
  EXPECT_TRUE(wait(loop, [&] { return is_done; }));
}

// One process that wants to lead, on a loop that it shares with the test's other candidates, so
// that they can be asked at the same instant.
struct Candidate {
  Candidate(io::Loop& loop, const std::string& kubeconfig, const std::string& namespace_,
            const std::string& identity)
      : http(loop),
        client(loop, http,
               std::make_shared<kube::Credentials>(
                   loop, kube::find_login({.kubeconfig = kubeconfig}).value(), Log()),
               metrics, Log()),
        elector(loop, client, nullptr, metrics, Log(),
                {.namespace_ = namespace_,
                 .name = "leader",
                 .election = {.identity = identity,
                              .lease_duration = seconds(4),
                              .renew_deadline = seconds(2),
                              .retry_period = milliseconds(500)}},
                {.on_started = [this] { leads = true; }, .on_stopped = [this] { leads = false; }}) {
  }

  Metrics metrics;
  http::Client http;
  kube::Client client;
  bool leads = false;
  LeaderElector elector;
};

TEST(LeaderElector, TheNextLeadsAtOnceWhenTheLeaderEnds) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const std::string namespace_ = cluster.unique_namespace().value();
  io::Loop loop;
  Candidate first(loop, cluster.kubeconfig(), namespace_, "first");
  Candidate second(loop, cluster.kubeconfig(), namespace_, "second");
  first.elector.start();
  ASSERT_TRUE(wait(loop, [&] { return first.leads; }));
  second.elector.start();
  ASSERT_TRUE(wait(loop, [&] { return second.elector.holder() == "first"; }));
  EXPECT_FALSE(second.elector.is_leading());

  finish(loop, first.elector.stop());
  EXPECT_FALSE(first.leads);
  const Instant released = io::Loop::now();
  ASSERT_TRUE(wait(loop, [&] { return second.leads; }));

  EXPECT_LT(io::Loop::now() - released, seconds(4)) << "it waited for the Lease to expire";
  finish(loop, second.elector.stop());
  EXPECT_TRUE(wait(loop, [&] { return loop.spawned_count() == 0; }));
}

TEST(LeaderElector, OneThatIsCutOffStopsBeforeAnotherLeads) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const std::string namespace_ = cluster.unique_namespace().value();
  io::Loop loop;
  Candidate cut_off(loop, cluster.proxied_kubeconfig(), namespace_, "cut-off");
  Candidate other(loop, cluster.kubeconfig(), namespace_, "other");
  cut_off.elector.start();
  ASSERT_TRUE(wait(loop, [&] { return cut_off.leads; }));
  other.elector.start();
  ASSERT_TRUE(wait(loop, [&] { return other.elector.holder() == "cut-off"; }));

  ASSERT_TRUE(cluster.cut().has_value());
  bool never_both = true;
  ASSERT_TRUE(wait(loop, [&] {
    never_both = never_both && !(cut_off.elector.is_leading() && other.elector.is_leading());
    return other.leads;
  }));
  EXPECT_TRUE(never_both);
  EXPECT_FALSE(cut_off.leads);

  // It comes back as a candidate.
  ASSERT_TRUE(cluster.heal().has_value());
  ASSERT_TRUE(wait(loop, [&] { return cut_off.elector.holder() == "other"; }));
  EXPECT_FALSE(cut_off.elector.is_leading());
  finish(loop, cut_off.elector.stop());
  finish(loop, other.elector.stop());
  EXPECT_TRUE(wait(loop, [&] { return loop.spawned_count() == 0; }));
}

TEST(LeaderElector, LeavesTheRestOfTheLeaseToOthers) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const std::string namespace_ = cluster.unique_namespace().value();
  ASSERT_TRUE(cluster
                  .kubectl({"apply", "-n", namespace_, "-f", "-"},
                           "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: "
                           "leader, labels: {team: ours}}}")
                  .has_value());
  io::Loop loop;
  Candidate candidate(loop, cluster.kubeconfig(), namespace_, "us");
  candidate.elector.start();
  ASSERT_TRUE(wait(loop, [&] { return candidate.leads; }));

  const auto lease = cluster.kubectl(
      {"get", "lease", "leader", "-n", namespace_, "-o",
       "jsonpath={.metadata.labels.team} {.spec.holderIdentity} {.spec.leaseDurationSeconds}"});

  EXPECT_EQ(lease.value_or(""), "ours us 4");
  finish(loop, candidate.elector.stop());
  EXPECT_TRUE(wait(loop, [&] { return loop.spawned_count() == 0; }));
}

TEST(EventRecorder, ShowsInKubectlDescribe) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const std::string namespace_ = cluster.unique_namespace().value();
  Session session(cluster.kubeconfig());
  const json::Value object = session.must(
      session.client.create(kube::kConfigMaps, kube::config_map(namespace_, "a"), {}, {}));
  EventRecorder recorder(session.loop, session.client, Log(), "hangar");

  for (int count = 0; count < 3; ++count) {
    recorder.record(
        object,
        {.type = EventType::Warning, .reason = "FlightFailed", .message = "the flight trapped"});
    // Each Event is written by itself, so that the count is updated.
    ASSERT_TRUE(wait(session.loop, [&] { return session.loop.spawned_count() > 0; }));
    ASSERT_TRUE(wait(session.loop, [&] { return session.loop.spawned_count() == 0; }));
  }
  recorder.record(object,
                  {.type = EventType::Normal, .reason = "Deployed", .message = "all is well"});
  finish(session.loop, recorder.stop());

  const auto described = cluster.kubectl({"describe", "configmap", "a", "-n", namespace_});
  ASSERT_TRUE(described.has_value());
  EXPECT_THAT(*described, HasSubstr("FlightFailed"));
  EXPECT_THAT(*described, HasSubstr("x3 over"));
  EXPECT_THAT(*described, HasSubstr("the flight trapped"));
  EXPECT_THAT(*described, HasSubstr("all is well"));
  EXPECT_THAT(*described, HasSubstr("hangar"));
}

TEST(Finalizer, IsAddedAndRemovedWithoutTouchingOthers) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const std::string namespace_ = cluster.unique_namespace().value();
  Session session(cluster.kubeconfig());
  json::Value object = kube::config_map(namespace_, "a");
  json::set_at(object, {"metadata", "finalizers"}, json::Array{"example.com/theirs"});
  const json::Value created =
      session.must(session.client.create(kube::kConfigMaps, object, {}, {}));

  const json::Value with = session.must(
      add_finalizer(session.client, kube::kConfigMaps, created, "example.com/ours", "tests", {}));
  EXPECT_TRUE(kube::has_finalizer(with, "example.com/ours"));
  EXPECT_TRUE(kube::has_finalizer(with, "example.com/theirs"));

  // From a state that is older than the last write.
  const auto stale = session.run(
      add_finalizer(session.client, kube::kConfigMaps, created, "example.com/more", "tests", {}));
  ASSERT_FALSE(stale.has_value());
  EXPECT_EQ(stale.error().kind(), ErrorKind::Conflict) << stale.error().message();

  const json::Value without = session.must(
      remove_finalizer(session.client, kube::kConfigMaps, with, "example.com/ours", "tests", {}));
  EXPECT_FALSE(kube::has_finalizer(without, "example.com/ours"));
  EXPECT_TRUE(kube::has_finalizer(without, "example.com/theirs"));
}

}  // namespace
}  // namespace hangar::reconcile
