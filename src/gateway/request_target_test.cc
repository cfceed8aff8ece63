#include "gateway/request_target.h"

#include "gateway/limits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hangar::gateway {
namespace {

TEST(RequestTarget, IsReadAsTheApiServerReadsIt) {
  struct Row {
    const char* method;
    const char* target;
    Verb verb;
    // group/version/plural/namespace/name/subresource
    const char* meaning;
  };
  const std::vector<Row> rows = {
      {"GET", "/api/v1/pods", Verb::List, "/v1/pods///"},
      {"GET", "/api/v1/namespaces/a/pods", Verb::List, "/v1/pods/a//"},
      {"GET", "/api/v1/namespaces/a/pods/b", Verb::Get, "/v1/pods/a/b/"},
      {"GET", "/api/v1/namespaces/a/pods/b/log?follow=true", Verb::Get, "/v1/pods/a/b/log"},
      {"GET", "/apis/apps/v1/namespaces/a/deployments/b/scale", Verb::Get,
       "apps/v1/deployments/a/b/scale"},
      {"GET", "/apis/amurant.io/v1/namespaces/ring0/tests?", Verb::List,
       "amurant.io/v1/tests/ring0//"},
      {"GET", "/apis/amurant.io/v1/namespaces/r/tests?&watch=true&resourceVersion=7", Verb::Watch,
       "amurant.io/v1/tests/r//"},
      {"GET", "https://kubernetes.default/api/v1/pods?watch=1", Verb::Watch, "/v1/pods///"},
      {"GET", "/api/v1/pods?watch", Verb::Watch, "/v1/pods///"},
      {"GET", "/api/v1/pods?watch=FALSE", Verb::List, "/v1/pods///"},
      {"GET", "/api/v1/pods?watch=0&watch=1", Verb::List, "/v1/pods///"},
      {"GET", "/api/v1/namespaces/a/pods/b?watch=true", Verb::Get, "/v1/pods/a/b/"},
      {"GET", "/api/v1/watch/namespaces/a/pods", Verb::Watch, "/v1/pods/a//"},
      {"GET", "/api/v1/watch/pods?watch=false", Verb::Watch, "/v1/pods///"},
      {"GET", "/api/v1/watch/namespaces/a/pods/b", Verb::Watch, "/v1/pods/a/b/"},
      {"GET", "/apis/g/v1/watch", Verb::Other, "/////"},
      {"GET", "/apis/g/v1/watch?watch=true", Verb::Other, "/////"},
      {"GET", "/apis/g/v1/namespaces/a/watch", Verb::List, "g/v1/watch/a//"},
      {"GET", "/api/v1/proxy/namespaces/a/pods/b", Verb::Other, "/////"},
      {"GET", "/apis/g/v1/proxy", Verb::Other, "/////"},
      {"GET", "/api/v1/namespaces/a/namespaces", Verb::List, "/v1/namespaces/a//"},
      {"GET", "/api/v1/namespaces/a/namespaces/b", Verb::Get, "/v1/namespaces/a/b/"},
      {"GET", "/api/v1/namespaces/a/nodes", Verb::List, "/v1/nodes/a//"},
      {"GET", "/api/v1/namespaces", Verb::List, "/v1/namespaces///"},
      {"GET", "/api/v1/namespaces/a", Verb::Get, "/v1/namespaces/a/a/"},
      {"PUT", "/api/v1/namespaces/a/status", Verb::Update, "/v1/namespaces/a/a/status"},
      {"POST", "/api/v1/namespaces/a/pods", Verb::Create, "/v1/pods/a//"},
      {"PATCH", "/apis/g/v1/things/x", Verb::Patch, "g/v1/things//x/"},
      {"DELETE", "/apis/g/v1/things", Verb::DeleteCollection, "g/v1/things///"},
      {"DELETE", "/apis/g/v1/things/x", Verb::Delete, "g/v1/things//x/"},
      {"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode", Verb::Get,
       "rbac.authorization.k8s.io/v1/clusterroles//system:node/"},
      {"HEAD", "/api/v1/pods", Verb::Other, "/v1/pods///"},
      {"GET", "/", Verb::Other, "/////"},
      {"GET", "/version", Verb::Other, "/////"},
      {"GET", "/apis/apps/v1", Verb::Other, "/////"},
      {"GET", "/api/v1/", Verb::Other, "/////"},
      {"GET", "/api/v1/pods/?watch=true", Verb::Other, "/////"},
  };
  for (const Row& row : rows) {
    const auto target = parse_target(row.method, row.target);
    ASSERT_TRUE(target.has_value()) << row.target << ": " << target.error().message();
    EXPECT_EQ(target->verb, row.verb) << row.target;
    EXPECT_EQ(target->group + "/" + target->version + "/" + target->plural + "/" +
                  target->namespace_ + "/" + target->name + "/" + target->subresource,
              row.meaning)
        << row.target;
  }
}

TEST(RequestTarget, ReadsTheOptionsOfListsAndWatches) {
  const auto target = parse_target(
      "GET",
      "/api/v1/pods?watch=true&labelSelector=a+in+%28b%2Cc%29&fieldSelector=metadata.name%3Dx"
      "&resourceVersion=12&resourceVersionMatch=NotOlderThan&limit=500&continue=abc"
      "&allowWatchBookmarks=true&sendInitialEvents=true&timeoutSeconds=290&resourceVersion=99");
  ASSERT_TRUE(target.has_value());
  const ReadOptions& options = target->options;
  EXPECT_EQ(options.label_selector, "a in (b,c)");
  EXPECT_EQ(options.field_selector, "metadata.name=x");
  EXPECT_EQ(options.resource_version, "12") << "the first counts";
  EXPECT_EQ(options.resource_version_match, "NotOlderThan");
  EXPECT_EQ(options.limit, 500);
  EXPECT_EQ(options.continue_token, "abc");
  EXPECT_TRUE(options.allow_watch_bookmarks);
  EXPECT_EQ(options.send_initial_events, std::optional(true));
  EXPECT_EQ(options.timeout_seconds, std::optional<std::int64_t>(290));
  EXPECT_FALSE(options.is_malformed);
  EXPECT_TRUE(parse_target("GET", "/api/v1/pods?limit=x")->options.is_malformed);
  EXPECT_TRUE(parse_target("GET", "/api/v1/pods?limit=")->options.is_malformed);
  EXPECT_TRUE(parse_target("GET", "/api/v1/pods?timeoutSeconds=-1")->options.is_malformed);
}

TEST(RequestTarget, IsWrittenAnewAsItWasUnderstood) {
  const auto target =
      parse_target("GET", "http://elsewhere:1/api/v1/namespaces/%61/pods?labelSelector=a=b&&x");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->to_string(), "/api/v1/namespaces/a/pods?labelSelector=a%3Db&x=");
  EXPECT_EQ(parse_target("GET", "/apis/")->to_string(), "/apis/");
  EXPECT_EQ(parse_target("GET", "/")->to_string(), "/");
}

TEST(RequestTarget, RefusesWhatTwoReadersCouldReadDifferently) {
  const std::vector<std::string> refused = {
      "",
      "api/v1/pods",
      "//evil/api/v1/pods",
      "/api//v1/pods",
      "/api/v1/namespaces/a/pods//",
      "/api/v1/namespaces/./pods",
      "/api/v1/namespaces/../pods",
      "/api/v1/namespaces/%2e%2e/pods",
      "/api/v1/namespaces/a%2fpods",
      "/api/v1/namespaces/a%5cpods",
      "/api/v1/namespaces/a%252fpods",
      "/api/v1/namespaces/a%00/pods",
      "/api/v1/namespaces/a%0d%0aHost:%20x/pods",
      "/api/v1/pods?watch=%zz",
      "/api/v1/pods?watch=%2",
      "/api/v1/pods?a;b",
      "/api/v1/pods#fragment",
      "/api/v1/po ds",
      std::string("/api/v1/pods\0", 13),
      "/api/v1/pods\r\nX: y",
      "ftp://host/api/v1/pods",
      "http://user@host/api/v1/pods",
      "http:///api/v1/pods",
      "http://host",
      "http://host?watch=true",
      "/" + std::string(limits::kGatewayTargetBytesMax, 'a'),
  };
  for (const std::string& target : refused)
    EXPECT_FALSE(parse_target("GET", target).has_value()) << target;
}

}  // namespace
}  // namespace hangar::gateway
