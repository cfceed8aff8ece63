// Modules over HTTP, from files and from ConfigMaps, against servers that behave well and badly.

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "fetching.h"
#include "http/address_policy.h"
#include "io/event.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "modules/config_map.h"
#include "modules/fetcher.h"
#include "modules/limits.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "raw_server.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::testing {
namespace {

using modules::Fetched;
using Request = RawServer::Request;

class HttpSource : public ::testing::Test {
 protected:
  // The error of a fetch that has to fail.
  Error failure(std::string_view reference, modules::FetchOptions options = {}) {
    Result<Fetched> fetched = host_.fetch(reference, std::move(options));
    if (fetched) return {ErrorKind::Cancelled, "no error"};
    return std::move(fetched).error();
  }

  TemporaryDirectory directory_;
  FetchingHost host_{directory_.path()};
};

TEST_F(HttpSource, GivesRawAndGzippedModules) {
  const std::string module = module_named("first");
  const std::string packed = gzip_of(module);
  RawServer server([&](const Request& request) {
    if (request.path == "/raw.wasm") return answer(200, module);
    if (request.path == "/packed.wasm.gz") return answer(200, packed);
    return answer(200, packed, {{"Content-Encoding", "gzip"}});
  });
  for (const std::string_view path : {"/raw.wasm", "/packed.wasm.gz", "/encoded.wasm"}) {
    const Result<Fetched> fetched = host_.fetch(server.url(path));

    ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
    EXPECT_EQ(fetched->wasm, module);
    EXPECT_EQ(fetched->sha256, sha256_of(module));
    EXPECT_EQ(fetched->size_bytes, module.size());
    EXPECT_FALSE(fetched->is_unchanged);
  }
}

TEST_F(HttpSource, FollowsRedirectsWithoutCarryingThePasswordToAnotherHost) {
  const std::string module = module_named("moved");
  RawServer target([&](const Request&) { return answer(200, module); });
  RawServer server(
      [&](const Request&) { return answer(302, "", {{"Location", target.url("/there.wasm")}}); });

  const Result<Fetched> fetched =
      host_.fetch(fmt::format("http://me:hunter2@{}/here.wasm", server.address()));

  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  EXPECT_EQ(fetched->wasm, module);
  EXPECT_EQ(server.requests().at(0).header("Authorization"), "Basic bWU6aHVudGVyMg==");
  EXPECT_EQ(target.requests().at(0).header("Authorization"), "");
}

class ModuleOfATenant : public ::testing::Test {
 protected:
  // The error that a tenant reads, after the module's name.
  static std::string told(FetchingHost& host, const std::string& reference,
                          modules::FetchOptions options = {}) {
    const Result<Fetched> fetched = host.fetch_as(tenant_, reference, std::move(options));
    if (fetched) return "no error";
    const std::string& message = fetched.error().message();
    EXPECT_TRUE(message.starts_with("module " + reference + ": ")) << message;
    return message.substr(std::min(message.size(), reference.size() + 9));
  }
  static FetchingHost allowing(const TemporaryDirectory& directory,
                               const std::vector<std::string>& addresses) {
    return FetchingHost(directory.path(), nullptr,
                        http::AddressPolicy::public_and(addresses).value());
  }

  static inline const modules::Requester tenant_ = modules::Requester::in_namespace("team");
  static constexpr std::string_view kRefused = "the module's address is not allowed here";
  static constexpr std::string_view kAway =
      "the module's server cannot be reached (the host's log says why)";
  TemporaryDirectory directory_;
};

TEST_F(ModuleOfATenant, ComesFromNoAddressThatIsNotAllowed) {
  RawServer server([](const Request&) { return answer(200, module_named("inside")); });
  FetchingHost host = allowing(directory_, {});
  const std::string port = server.address().substr(server.address().find(':'));

  EXPECT_EQ(told(host, server.url("/f.wasm")), kRefused);
  EXPECT_EQ(told(host, "http://localhost" + port + "/f.wasm"), kRefused);
  EXPECT_EQ(told(host, "http://169.254.169.254/latest/meta-data"), kRefused);
  EXPECT_EQ(told(host, "oci://" + server.address() + "/team/f:v1", {.insecure = true}), kRefused);
  // A number that some URL parsers take for 127.0.0.1 is not a host at all.
  const Result<Fetched> number = host.fetch_as(tenant_, "http://2130706433" + port + "/f.wasm", {});
  ASSERT_FALSE(number.has_value());
  EXPECT_EQ(number.error().kind(), ErrorKind::InvalidInput) << number.error().message();
  EXPECT_EQ(server.requests().size(), 0U);

  // An administrator's reference may go there, but no reference may reach a cloud's credentials.
  EXPECT_TRUE(host.fetch(server.url("/f.wasm")).has_value());
  EXPECT_EQ(host.fetch("http://169.254.169.254/latest/meta-data").error().kind(),
            ErrorKind::Denied);
}

TEST_F(ModuleOfATenant, ComesFromPublicAddressesOnlyWhereAPolicySaysSo) {
  RawServer server([](const Request&) { return answer(200, module_named("inside")); });
  FetchingHost host = allowing(directory_, {"127.0.0.1"});
  ASSERT_TRUE(host.fetch_as(tenant_, server.url("/f.wasm"), {}).has_value());
  const std::size_t requests = server.requests().size();

  const Result<Fetched> narrowed =
      host.fetch_as(tenant_.at_public_addresses("TenantPolicy a"), server.url("/f.wasm"), {});

  ASSERT_FALSE(narrowed.has_value());
  EXPECT_EQ(narrowed.error().kind(), ErrorKind::Denied);
  EXPECT_TRUE(narrowed.error().message().ends_with(std::string(kRefused) +
                                                   ": TenantPolicy a allows public addresses only"))
      << narrowed.error().message();
  EXPECT_EQ(server.requests().size(), requests);
}

TEST_F(ModuleOfATenant, IsNotRedirectedToAnAddressThatIsNotAllowed) {
  RawServer server([](const Request& request) {
    if (request.path == "/f.wasm") return answer(302, "", {{"Location", "http://127.0.0.2/"}});
    // A registry whose token server or object store is on another host.
    if (request.path.contains("token")) {
      return answer(401, "", {{"WWW-Authenticate", "Bearer realm=\"http://127.0.0.2/token\""}});
    }
    return answer(307, "", {{"Location", "http://169.254.169.254/"}});
  });
  FetchingHost host = allowing(directory_, {"127.0.0.1"});

  EXPECT_EQ(told(host, server.url("/f.wasm")), kRefused);
  EXPECT_EQ(told(host, server.url("/g.wasm")), kRefused);
  EXPECT_EQ(told(host, "oci://" + server.address() + "/token/f:v1", {.insecure = true}), kRefused);
}

TEST_F(ModuleOfATenant, SaysTheSameOfEverySourceThatDoesNotAnswer) {
  RawServer closed([](const Request&) { return std::string(); });
  closed.stop();
  RawServer silent([](const Request&) { return std::string(); });
  RawServer garbage([](const Request&) { return std::string("SSH-2.0-OpenSSH_9.2\r\n"); });
  RawServer cut([](const Request&) {
    return std::string("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123");
  });
  FetchingHost host(directory_.path());
  for (const RawServer* server : {&closed, &silent, &garbage, &cut}) {
    EXPECT_EQ(told(host, server->url("/f.wasm")), kAway);
    EXPECT_EQ(told(host, "https://" + server->address() + "/f.wasm"), kAway);
  }
  // The administrator can read the reason.
  const Error error = host.fetch(closed.url("/f.wasm")).error();
  EXPECT_NE(error.message().find("Failed to connect"), std::string::npos) << error.message();
}

TEST_F(ModuleOfATenant, IsUsedOnWhileItsSourceIsAwayAndDoesNotSayWhy) {
  RawServer server([](const Request&) { return answer(200, module_named("kept")); });
  FetchingHost host(directory_.path());
  ASSERT_TRUE(host.fetch_as(tenant_, server.url("/f.wasm")).has_value());
  server.stop();

  const Result<Fetched> fetched = host.fetch_as(tenant_, server.url("/f.wasm"));

  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  EXPECT_EQ(fetched->stale_because, kAway);
}

TEST_F(HttpSource, EndsARedirectInCircles) {
  RawServer server(
      [](const Request& request) { return answer(302, "", {{"Location", request.path + "x"}}); });

  const Error error = failure(server.url("/a"));

  EXPECT_NE(error.message(), "no error");
  EXPECT_LE(server.requests().size(), 10U);
}

TEST_F(HttpSource, NeverLeavesHttp) {
  TemporaryDirectory other;
  ASSERT_TRUE(io::write_file(other.path() / "f.wasm", module_named("file")).has_value());
  const std::string location = "file://" + (other.path() / "f.wasm").string();
  RawServer server([&](const Request&) { return answer(302, "", {{"Location", location}}); });

  EXPECT_NE(failure(server.url("/a")).message(), "no error");
}

TEST_F(HttpSource, AsksWithTheETagAndNeedsNoBytesForTheSameModule) {
  const std::string module = module_named("tagged");
  RawServer server([&](const Request& request) {
    if (request.header("If-None-Match") == "\"one\"") return answer(304, "");
    return answer(200, module, {{"ETag", "\"one\""}});
  });
  const std::string sha256 = host_.fetch(server.url("/f.wasm"))->sha256;

  const Result<Fetched> known = host_.fetch(server.url("/f.wasm"), {.have_sha256 = sha256});
  const Result<Fetched> unknown = host_.fetch(server.url("/f.wasm"));

  ASSERT_TRUE(known.has_value()) << known.error().message();
  EXPECT_TRUE(known->is_unchanged);
  EXPECT_TRUE(known->wasm.empty());
  EXPECT_EQ(known->sha256, sha256);
  ASSERT_TRUE(unknown.has_value()) << unknown.error().message();
  EXPECT_EQ(unknown->wasm, module);
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST_F(HttpSource, AsksWithTheDateWhereThereIsNoETag) {
  const std::string date = "Sat, 21 Nov 2026 07:00:00 GMT";
  RawServer server([&](const Request& request) {
    if (request.header("If-Modified-Since") == date) return answer(304, "");
    return answer(200, module_named("dated"), {{"Last-Modified", date}});
  });
  ASSERT_TRUE(host_.fetch(server.url("/f.wasm")).has_value());

  const Result<Fetched> again = host_.fetch(server.url("/f.wasm"));

  ASSERT_TRUE(again.has_value()) << again.error().message();
  EXPECT_EQ(again->wasm, module_named("dated"));
}

TEST_F(HttpSource, SeesThatAUrlHasANewModule) {
  std::atomic<bool> is_new = false;
  RawServer server([&](const Request&) {
    return is_new ? answer(200, module_named("new"), {{"ETag", "\"2\""}})
                  : answer(200, module_named("old"), {{"ETag", "\"1\""}});
  });
  const std::string old_sha256 = host_.fetch(server.url("/f.wasm"))->sha256;
  is_new = true;

  const Result<Fetched> fetched = host_.fetch(server.url("/f.wasm"), {.have_sha256 = old_sha256});

  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  EXPECT_FALSE(fetched->is_unchanged);
  EXPECT_EQ(fetched->wasm, module_named("new"));
}

TEST_F(HttpSource, FetchesOnceWhatManyWantAtOnce) {
  RawServer server([&](const Request& request) {
    if (request.header("If-None-Match") == "\"e\"") return answer(304, "");
    return answer(200, module_named("shared"), {{"ETag", "\"e\""}});
  });

  const auto all = host_.fetch_at_once(server.url("/f.wasm"), 20);

  ASSERT_EQ(all.size(), 20U);
  for (const Result<Fetched>& fetched : all) {
    ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
    EXPECT_EQ(fetched->wasm, module_named("shared"));
  }
  int whole = 0;
  for (const Request& request : server.requests())
    whole += request.header("If-None-Match").empty() ? 1 : 0;
  EXPECT_EQ(whole, 1);
}

TEST_F(HttpSource, SurvivesARestartWhileTheServerIsAway) {
  const std::string module = module_named("kept");
  RawServer server([&](const Request&) { return answer(200, module); });
  ASSERT_TRUE(host_.fetch(server.url("/f.wasm")).has_value());
  server.stop();
  FetchingHost restarted(directory_.path());

  const Result<Fetched> fetched = restarted.fetch(server.url("/f.wasm"));

  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  EXPECT_EQ(fetched->wasm, module);
  EXPECT_FALSE(fetched->stale_because.empty());
  EXPECT_EQ(failure(server.url("/f.wasm"), {.may_be_stale = false}).kind(), ErrorKind::Unavailable);
  EXPECT_EQ(failure(server.url("/never.wasm")).kind(), ErrorKind::Unavailable);
}

TEST_F(HttpSource, DoesNotPretendThatARemovedModuleIsStillThere) {
  std::atomic<bool> is_removed = false;
  RawServer server([&](const Request&) {
    return is_removed ? answer(404, "") : answer(200, module_named("removed"));
  });
  ASSERT_TRUE(host_.fetch(server.url("/f.wasm")).has_value());
  is_removed = true;

  EXPECT_EQ(failure(server.url("/f.wasm")).kind(), ErrorKind::NotFound);
}

TEST_F(HttpSource, NeedsNoServerForAPromisedModuleThatItGave) {
  const std::string module = module_named("promised");
  RawServer server([&](const Request&) { return answer(200, module); });
  const modules::FetchOptions promised{.expected_sha256 = sha256_of(module)};
  ASSERT_TRUE(host_.fetch(server.url("/f.wasm"), promised).has_value());
  server.stop();
  FetchingHost restarted(directory_.path());

  const Result<Fetched> fetched = restarted.fetch(server.url("/f.wasm"), promised);

  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  EXPECT_EQ(fetched->wasm, module);
  EXPECT_EQ(fetched->stale_because, "");
}

// A host that was given a module, and asks its source again each time.
struct Doubting {
  explicit Doubting(const std::filesystem::path& directory)
      : host(directory, nullptr, http::AddressPolicy(), Duration(0)) {}

  Result<Fetched> fetch(const std::string& url) {
    return host.fetch(url, {.expected_sha256 = sha256_of(module)});
  }
  ErrorKind kind_of(const std::string& url) {
    const Result<Fetched> fetched = fetch(url);
    EXPECT_FALSE(fetched.has_value());
    return fetched ? ErrorKind::Cancelled : fetched.error().kind();
  }

  const std::string module = module_named("promised");
  FetchingHost host;
};

TEST_F(HttpSource, AsksForAPromisedModuleAgainOnceItsProofIsOld) {
  Doubting doubting(directory_.path());
  std::atomic<int> status = 200;
  RawServer server([&](const Request& request) {
    if (status != 200) return answer(status, "");
    const bool is_same = request.header("If-None-Match") == "\"e\"";
    return is_same ? answer(304, "") : answer(200, doubting.module, {{"ETag", "\"e\""}});
  });
  const std::string url = server.url("/f.wasm");
  ASSERT_TRUE(doubting.fetch(url).has_value());

  ASSERT_TRUE(doubting.fetch(url).has_value());
  EXPECT_EQ(server.requests().size(), 2U);
  status = 503;
  const Result<Fetched> away = doubting.fetch(url);
  ASSERT_TRUE(away.has_value()) << away.error().message();
  EXPECT_EQ(away->wasm, doubting.module);
  EXPECT_FALSE(away->stale_because.empty());
}

TEST_F(HttpSource, GivesNothingThatItHasRefusedOnceItIsAway) {
  for (const int refusal : {401, 403, 404}) {
    std::filesystem::create_directory(directory_.path() / std::to_string(refusal));
    Doubting doubting(directory_.path() / std::to_string(refusal));
    std::atomic<int> status = 200;
    RawServer server([&](const Request&) {
      return status == 200 ? answer(200, doubting.module) : answer(status, "");
    });
    const std::string url = server.url("/f.wasm");
    ASSERT_TRUE(doubting.fetch(url).has_value());

    status = refusal;
    EXPECT_EQ(doubting.kind_of(url), refusal == 404 ? ErrorKind::NotFound : ErrorKind::Denied);
    status = 503;
    EXPECT_EQ(doubting.kind_of(url), ErrorKind::Unavailable);
    Doubting restarted(directory_.path() / std::to_string(refusal));
    EXPECT_EQ(restarted.kind_of(url), ErrorKind::Unavailable);
  }
}

// A digest is not secret: statuses, tags and manifests show it. A tenant that knows it may still
// not get the module, although the store has it for another tenant.
TEST_F(HttpSource, GivesNobodyAModuleForKnowingItsDigest) {
  const std::string module = module_named("private");
  const std::string sha256 = sha256_of(module);
  RawServer server([&](const Request& request) {
    if (request.header("Authorization").empty()) return answer(401, "");
    return answer(200, module, {{"ETag", "\"e\""}});
  });
  const std::string with_password = "http://owner:secret@" + server.url("/f.wasm").substr(7);
  const modules::Requester owner = modules::Requester::in_namespace("owner");
  const modules::Requester stranger = modules::Requester::in_namespace("stranger");
  ASSERT_TRUE(host_.fetch_as(owner, with_password).has_value());

  const auto kind_of = [&](FetchingHost& host, const std::string& url) {
    const auto refused = host.fetch_as(stranger, url, {.expected_sha256 = sha256});
    return refused ? "given" : std::string(name_of(refused.error().kind()));
  };
  const std::string promised = server.url("/sha256_" + sha256 + ".wasm");
  EXPECT_EQ(kind_of(host_, server.url("/f.wasm")), "Denied");
  EXPECT_EQ(kind_of(host_, promised), "Denied");
  EXPECT_EQ(kind_of(host_, "http://127.0.0.1:1/f.wasm"), "Unavailable");
  EXPECT_EQ(kind_of(host_, "oci://127.0.0.1:1/f:sha256_" + sha256), "Unavailable");
  FetchingHost restarted(directory_.path());
  EXPECT_EQ(kind_of(restarted, promised), "Denied");
  // Even if a tenant knows the very reference, the source has to answer it once.
  server.stop();
  EXPECT_EQ(kind_of(restarted, with_password), "Unavailable");
  EXPECT_TRUE(restarted.fetch_as(owner, with_password).has_value()) << "which had proven it before";
}

TEST_F(HttpSource, DownloadsOnceForAllWhomTheSourceGivesTheSameReference) {
  const std::string module = module_named("shared");
  RawServer server([&](const Request& request) {
    if (!request.header("If-None-Match").empty()) return answer(304, "");
    return answer(200, module, {{"ETag", "\"e\""}});
  });
  const auto first = modules::Requester::in_namespace("first");
  const auto second = modules::Requester::in_namespace("second");
  ASSERT_TRUE(host_.fetch_as(first, server.url("/f.wasm")).has_value());

  const Result<Fetched> fetched = host_.fetch_as(second, server.url("/f.wasm"));

  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  EXPECT_EQ(fetched->wasm, module);
  ASSERT_EQ(server.requests().size(), 2U);
  EXPECT_EQ(server.requests()[1].header("If-None-Match"), "\"e\"") << "asked, not downloaded";
  server.stop();
  EXPECT_TRUE(host_.fetch_as(second, server.url("/f.wasm")).has_value()) << "and proven since";
}

TEST_F(HttpSource, ChecksThePromiseAlsoWhenTheModuleIsHere) {
  RawServer server([&](const Request& request) {
    if (!request.header("If-None-Match").empty()) return answer(304, "");
    return answer(200, module_named("other"), {{"ETag", "\"e\""}});
  });
  ASSERT_TRUE(host_.fetch(server.url("/f.wasm")).has_value());

  const Error error = failure(server.url("/f.wasm"), {.expected_sha256 = "applebottomjeans"});

  EXPECT_EQ(error.kind(), ErrorKind::InvalidInput);
  EXPECT_NE(error.message().find("cannot verify module against expected checksum: wanted "
                                 "\"applebottomjeans\""),
            std::string::npos)
      << error.message();
}

TEST_F(HttpSource, ChecksThePromiseOfTheName) {
  const std::string module = module_named("by name");
  RawServer server([&](const Request&) { return answer(200, module); });

  EXPECT_TRUE(host_.fetch(server.url("/f_sha256_" + sha256_of(module) + ".wasm")).has_value());
  EXPECT_EQ(failure(server.url("/sha256_" + std::string(64, '0') + ".wasm")).kind(),
            ErrorKind::InvalidInput);
}

TEST_F(HttpSource, FetchesAgainWhatTheDiskLost) {
  const std::string module = module_named("lost");
  RawServer server([&](const Request& request) {
    if (!request.header("If-None-Match").empty()) return answer(304, "");
    return answer(200, module, {{"ETag", "\"e\""}});
  });
  ASSERT_TRUE(host_.fetch(server.url("/f.wasm")).has_value());
  const auto file = directory_.path() / "store" / (sha256_of(module) + ".wasm.gz");
  ASSERT_TRUE(io::write_file(file, "damaged").has_value());

  const Result<Fetched> fetched = host_.fetch(server.url("/f.wasm"));

  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  EXPECT_EQ(fetched->wasm, module);
}

TEST_F(HttpSource, MapsEveryFaultToAKindAndWords) {
  const std::string module = module_named("x");
  const std::string packed = gzip_of(std::string(5000, 'x') + module);
  const std::string huge =
      fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n\0asm", 300'000'000);
  struct Case {
    std::string_view name;
    std::string bytes;
    ErrorKind kind;
    std::string_view words;
  };
  const Case cases[] = {
      {"missing", answer(404, "no"), ErrorKind::NotFound, "404 not found"},
      {"login", answer(401, "no"), ErrorKind::Denied, "401 unauthorized"},
      {"forbidden", answer(403, "no"), ErrorKind::Denied, "403 forbidden"},
      {"broken", answer(500, "no"), ErrorKind::Unavailable, "500 internal server error"},
      {"busy", answer(429, "no"), ErrorKind::Unavailable, "429 too many requests"},
      {"partial", answer(206, module), ErrorKind::InvalidInput, "unexpected status 206"},
      {"page", answer(200, "<!doctype html><title>Sign in"), ErrorKind::InvalidInput,
       "an HTML page"},
      {"empty", answer(200, ""), ErrorKind::InvalidInput, "nothing (0 bytes)"},
      {"cut gzip", answer(200, packed.substr(0, packed.size() / 2)), ErrorKind::InvalidInput,
       "gzip is cut off"},
      {"cut body", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", ErrorKind::Unavailable,
       ""},
      {"huge", huge, ErrorKind::LimitExceeded, "300000000"},
      {"bomb", answer(200, gzip_of(std::string(limits::kFetchedBytesMax + 1, '\0'))),
       ErrorKind::LimitExceeded, "inflates to more"},
      {"no answer", "", ErrorKind::Unavailable, ""},
  };
  for (const Case& one : cases) {
    RawServer server([&](const Request&) { return one.bytes; });

    const Error error = failure(server.url("/f.wasm?token=hunter2"));

    EXPECT_EQ(error.kind(), one.kind) << one.name << ": " << error.message();
    EXPECT_NE(error.message().find(one.words), std::string::npos)
        << one.name << ": " << error.message();
    EXPECT_NE(error.message().find("module " + server.url("/f.wasm")), std::string::npos)
        << error.message();
    EXPECT_EQ(error.message().find("hunter2"), std::string::npos) << error.message();
  }
}

TEST_F(HttpSource, StopsABodyThatGoesOnForEver) {
  // Without a Content-Length only counting detects it.
  const std::string endless =
      "HTTP/1.1 200 OK\r\n\r\n" + std::string(limits::kFetchedBytesMax + limits::kMiB, 'x');
  RawServer server([&](const Request&) { return endless; });

  EXPECT_EQ(failure(server.url("/f.wasm")).kind(), ErrorKind::LimitExceeded);
}

TEST_F(HttpSource, EndsWhenAskedTo) {
  std::stop_source stop;
  stop.request_stop();
  const auto reference = modules::Reference::parse("http://127.0.0.1:1/f.wasm");

  const Result<Fetched> result = io::run_to_end(
      host_.loop,
      host_.fetcher->fetch(modules::Requester::cluster_wide(), *reference, {}, stop.get_token()));

  EXPECT_EQ(result.error().kind(), ErrorKind::Cancelled);
}

TEST_F(HttpSource, ReadsFilesAndSeesThatTheyChanged) {
  const std::filesystem::path file = directory_.path() / "my flight.wasm";
  ASSERT_TRUE(io::write_file(file, module_named("one")).has_value());
  const Result<Fetched> first = host_.fetch(file.string());
  ASSERT_TRUE(first.has_value()) << first.error().message();

  EXPECT_TRUE(host_.fetch(file.string(), {.have_sha256 = first->sha256})->is_unchanged);
  ASSERT_TRUE(io::write_file(file, gzip_of(module_named("two"))).has_value());
  const Result<Fetched> second = host_.fetch(file.string(), {.have_sha256 = first->sha256});

  ASSERT_TRUE(second.has_value()) << second.error().message();
  EXPECT_EQ(second->wasm, module_named("two"));
}

TEST_F(HttpSource, ReadsRegularFilesOnly) {
  const std::filesystem::path fifo = directory_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);

  EXPECT_EQ(failure(fifo.string()).kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(failure(directory_.path().string()).kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(failure("file:///no/such/file.wasm").kind(), ErrorKind::NotFound);
}

// A cluster's ConfigMaps, as far as this folder needs them.
class OneConfigMap : public modules::ConfigMapReader {
 public:
  io::Task<Result<modules::ConfigMapContent>> read(modules::ConfigMapAccess access,
                                                   std::string name,
                                                   std::stop_token /*stop*/) override {
    ++reads;
    if (access.namespace_name() != "ns" || name != "flights") {
      co_return fail(ErrorKind::NotFound, "configmaps \"" + name + "\" not found");
    }
    co_return content;
  }

  modules::ConfigMapContent content;
  int reads = 0;
};

TEST(ConfigMapSource, GivesModulesUntilTheyChange) {
  OneConfigMap reader;
  // Base64 of the empty module.
  reader.content = {.binary_data = {{"f.wasm", "AGFzbQEAAAA="}}, .revision = "uid/1"};
  TemporaryDirectory directory;
  FetchingHost host(directory.path(), &reader);

  const Result<Fetched> first = host.fetch("configmap://ns/flights/f.wasm");
  ASSERT_TRUE(first.has_value()) << first.error().message();
  EXPECT_EQ(first->size_bytes, 8U);
  EXPECT_TRUE(
      host.fetch("configmap://ns/flights/f.wasm", {.have_sha256 = first->sha256})->is_unchanged);

  reader.content = {.binary_data = {{"f.wasm", "bm90IGEgbW9kdWxl"}}, .revision = "uid/2"};
  EXPECT_EQ(host.fetch("configmap://ns/flights/f.wasm").error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(host.fetch("configmap://ns/other").error().kind(), ErrorKind::NotFound);
}

// Keeps the first requester waiting until it is released.
class HeldConfigMap : public OneConfigMap {
 public:
  void hold_first(io::Loop& loop) { released_.emplace(loop); }
  void release() { released_->set(true); }
  io::Task<Result<modules::ConfigMapContent>> read(modules::ConfigMapAccess access,
                                                   std::string name,
                                                   std::stop_token stop) override {
    if (reads == 0) {
      ++reads;
      (void)co_await released_->wait();
    }
    co_return co_await OneConfigMap::read(std::move(access), std::move(name), std::move(stop));
  }

 private:
  std::optional<io::OneShot<bool>> released_;
};

TEST(ConfigMapSource, KeepsNobodyWaitingForLongBehindAnother) {
  TemporaryDirectory directory;
  HeldConfigMap reader;
  reader.content = {.binary_data = {{"f.wasm", "AGFzbQEAAAA="}}, .revision = "uid/1"};
  FetchingHost host(directory.path(), &reader, http::AddressPolicy(), std::chrono::hours(1),
                    std::chrono::milliseconds(20));
  reader.hold_first(host.loop);
  bool has_first = false;
  const auto fetch_first = [&]() -> io::Task<void> {
    const auto reference = modules::Reference::parse("configmap://ns/flights");
    const auto fetched =
        co_await host.fetcher->fetch(modules::Requester::in_namespace("ns"), *reference, {}, {});
    has_first = fetched.has_value();
  };
  host.loop.spawn(fetch_first());

  const Result<Fetched> second = host.fetch("configmap://ns/flights");

  ASSERT_TRUE(second.has_value()) << second.error().message();
  EXPECT_FALSE(has_first);
  reader.release();
  host.loop.run_until([&has_first] { return has_first; });
}

// The server has it, the store has it, its checksum is known: none of that gives access.
TEST(ConfigMapSource, GivesNothingToARequesterOfAnotherNamespace) {
  OneConfigMap reader;
  reader.content = {.binary_data = {{"f.wasm", "AGFzbQEAAAA="}}, .revision = "uid/1"};
  TemporaryDirectory directory;
  FetchingHost host(directory.path(), &reader);
  const auto owner =
      host.fetch_as(modules::Requester::in_namespace("ns"), "configmap://ns/flights");
  ASSERT_TRUE(owner.has_value()) << owner.error().message();
  const int reads = reader.reads;

  const modules::Requester stranger = modules::Requester::in_namespace("stranger");
  for (const std::string_view reference :
       {"configmap://ns/flights", "ConfigMap://ns/flights", "CONFIGMAP://ns/flights/f.wasm",
        "configmap://ns/missing"}) {
    for (const std::string& sha256 : {std::string(), owner->sha256}) {
      const auto refused = host.fetch_as(stranger, reference, {.expected_sha256 = sha256});
      ASSERT_FALSE(refused.has_value()) << reference;
      EXPECT_EQ(refused.error().kind(), ErrorKind::Denied) << refused.error().message();
      EXPECT_EQ(refused.error().message().find("f.wasm)"), std::string::npos);
    }
  }
  EXPECT_EQ(reader.reads, reads) << "nothing was asked for";
}

}  // namespace
}  // namespace hangar::testing
