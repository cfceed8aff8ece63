#include "gateway/own_writes.h"

#include "base/metrics.h"
#include "base/time.h"
#include "gateway/request_target.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::gateway {
namespace {

using namespace std::chrono_literals;

constexpr Instant kNow{1h};
constexpr std::uint64_t kUnknown = OwnWrites::kUnknownVersion;

std::string object_at(std::string_view version) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x","namespace":"a","resourceVersion":"{}"}}}})",
      version);
}

class OwnWritesTest : public ::testing::Test {
 protected:
  void wrote(std::string_view method, std::string_view path, int status, std::string_view body,
             Instant now = kNow, const std::string& user = "me") {
    writes_.wrote(user, *parse_target(method, path), status, body, now);
  }
  std::uint64_t oldest(std::string_view path, Instant now = kNow, const std::string& user = "me") {
    return writes_.oldest_for(user, *parse_target("GET", path), now);
  }

  Metrics metrics_;
  OwnWrites writes_{metrics_};
};

constexpr std::string_view kOne = "/api/v1/namespaces/a/configmaps/x";
constexpr std::string_view kPlace = "/api/v1/namespaces/a/configmaps";

TEST_F(OwnWritesTest, AReadIsAsNewAsTheLastOfThem) {
  wrote("POST", kPlace, 201, object_at("7"));
  wrote("PUT", kOne, 200, object_at("12"));
  wrote("PATCH", kOne, 200, object_at("9"));  // Answered late.
  EXPECT_EQ(oldest(kOne), 12U);
  EXPECT_EQ(oldest(kPlace), 12U);
  EXPECT_EQ(oldest("/api/v1/configmaps"), 12U);
}

TEST_F(OwnWritesTest, ReadsOfOthersAndElsewhereAreNotHeldUp) {
  wrote("PUT", kOne, 200, object_at("12"));
  EXPECT_EQ(oldest(kOne, kNow, "somebody"), 0U);
  EXPECT_EQ(oldest("/api/v1/namespaces/b/configmaps"), 0U);
  EXPECT_EQ(oldest("/api/v1/namespaces/a/secrets"), 0U);
  EXPECT_EQ(oldest("/apis/apps/v1/namespaces/a/configmaps"), 0U);
  EXPECT_EQ(oldest("/version"), 0U);
}

TEST_F(OwnWritesTest, ObjectsOfTheClusterAreReadByTheirNames) {
  wrote("POST", "/api/v1/namespaces", 201, object_at("12"));
  EXPECT_EQ(oldest("/api/v1/namespaces/new"), 12U);
}

TEST_F(OwnWritesTest, EventsAreTheSameInBothOfTheirGroups) {
  wrote("POST", "/apis/events.k8s.io/v1/namespaces/a/events", 201, object_at("12"));
  EXPECT_EQ(oldest("/api/v1/namespaces/a/events"), 12U);
  wrote("POST", "/api/v1/namespaces/b/events", 201, object_at("13"));
  EXPECT_EQ(oldest("/apis/events.k8s.io/v1/namespaces/b/events"), 13U);
}

TEST_F(OwnWritesTest, OfADeletionNobodyKnowsTheVersion) {
  wrote("DELETE", kOne, 200, object_at("12"));
  EXPECT_EQ(oldest(kOne), kUnknown);
  // A later write of known version tells nothing about it.
  wrote("POST", kPlace, 201, object_at("13"));
  EXPECT_EQ(oldest(kOne), kUnknown);
  EXPECT_EQ(oldest(kOne, kNow + kOwnWritesKept - 1s), kUnknown);
}

TEST_F(OwnWritesTest, WhatWasNotUnderstoodIsUnknown) {
  for (const std::string& body : {std::string(), std::string("k8s\0pods", 8), object_at("x"),
                                  std::string(R"({"apiVersion":"v1","kind":"Status"})")}) {
    OwnWrites writes(metrics_);
    writes.wrote("me", *parse_target("PUT", kOne), 200, body, kNow);
    EXPECT_EQ(writes.oldest_for("me", *parse_target("GET", kOne), kNow), kUnknown) << body;
  }
}

TEST_F(OwnWritesTest, AnErrorOfTheServerMayHaveWritten) {
  wrote("PUT", kOne, 500, {});
  EXPECT_EQ(oldest(kOne), kUnknown);
  wrote("PUT", "/api/v1/namespaces/b/configmaps/x", 0, {});
  EXPECT_EQ(oldest("/api/v1/namespaces/b/configmaps/x"), kUnknown);
}

TEST_F(OwnWritesTest, WhatWasRefusedOrOnlyTriedHasChangedNothing) {
  wrote("PUT", kOne, 409, {});
  wrote("PUT", std::string(kOne) + "?dryRun=All", 200, object_at("12"));
  wrote("POST", "/apis/authorization.k8s.io", 200, {});
  EXPECT_EQ(oldest(kOne), 0U);
}

// A guest can cancel a write with any path. Sixty such places of one user would take two megabytes.
TEST_F(OwnWritesTest, InAPlaceThatCannotExistAreNotKept) {
  for (const std::string& path : {"/apis/g/v1/namespaces/" + std::string(254, 'a') + "/things",
                                  "/apis/g/v1/namespaces/a/" + std::string(254, 'b'),
                                  "/apis/" + std::string(254, 'c') + "/v1/namespaces/a/things"}) {
    wrote("POST", path, 0, {});
    EXPECT_EQ(oldest(path), 0U) << path;
  }
  wrote("POST", "/apis/g/v1/namespaces/" + std::string(253, 'a') + "/things", 0, {});
  EXPECT_EQ(oldest("/apis/g/v1/things"), kUnknown);
}

TEST_F(OwnWritesTest, AreForgottenInTime) {
  wrote("PUT", kOne, 200, object_at("12"));
  wrote("DELETE", "/api/v1/namespaces/b/configmaps/x", 200, {});
  EXPECT_EQ(oldest(kOne, kNow + kOwnWritesKept), 0U);
  EXPECT_EQ(oldest("/api/v1/namespaces/b/configmaps", kNow + kOwnWritesKept), 0U);
  writes_.sweep(kNow + kOwnWritesKept - 1s);
  EXPECT_EQ(oldest(kOne), 12U);
  writes_.sweep(kNow + kOwnWritesKept);
  EXPECT_EQ(oldest(kOne), 0U);
}

TEST_F(OwnWritesTest, WhoWritesInTooManyPlacesReadsFromTheServer) {
  for (std::size_t index = 0; index <= kOwnWritePlacesMax; ++index)
    wrote("POST", fmt::format("/api/v1/namespaces/n{}/configmaps", index), 201, object_at("5"));
  EXPECT_EQ(oldest("/api/v1/namespaces/n0/configmaps"), kUnknown);
  EXPECT_EQ(oldest("/api/v1/namespaces/other/secrets"), kUnknown);
  EXPECT_EQ(oldest("/api/v1/namespaces/other/secrets", kNow + kOwnWritesKept), 0U);
}

TEST_F(OwnWritesTest, TheLagIsFromTheAnswerToTheWatch) {
  wrote("PUT", kOne, 200, object_at("12"));
  writes_.seen(12, kNow + 2s);
  writes_.seen(12, kNow + 9s);  // By another watch.
  writes_.seen(13, kNow + 9s);
  wrote("PUT", kOne, 200, object_at("13"));  // The watch was ahead.
  const Histogram::Snapshot lag =
      metrics_.histogram("hangar_gateway_own_write_lag_seconds", {}, {}).snapshot();
  EXPECT_EQ(lag.cumulative_counts.back(), 2U);
  EXPECT_EQ(lag.sum, 2);
}

}  // namespace
}  // namespace hangar::gateway
