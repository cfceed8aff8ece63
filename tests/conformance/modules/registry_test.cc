// Modules from OCI registries: a real one (Docker's, with basic authentication), and servers that
// do what the real one does not: token servers, redirects, false answers.

#include "base/limits.h"
#include "base/result.h"
#include "fetching.h"
#include "http/client.h"
#include "io/file.h"
#include "io/run.h"
#include "modules/docker_config.h"
#include "modules/fetcher.h"
#include "modules/internal/registry_auth.h"
#include "modules/limits.h"
#include "raw_server.h"
#include "testing/control_plane.h"
#include "testing/shared_control_plane.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::testing {
namespace {

using modules::Fetched;
using Request = RawServer::Request;

const SharedControlPlane kShared({.controller_manager = false, .registry = true});

constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view kOciIndex = "application/vnd.oci.image.index.v1+json";

modules::DockerConfig docker_config(const std::string& registry, std::string_view user,
                                    std::string_view password) {
  const auto config = modules::DockerConfig::parse(
      fmt::format(R"({{"auths": {{"{}": {{"username": "{}", "password": "{}"}}}}}})", registry,
                  user, password));
  EXPECT_TRUE(config.has_value());
  return config.value_or(modules::DockerConfig());
}

std::string layer_json(std::string_view type, std::string_view bytes) {
  return fmt::format(R"({{"mediaType": "{}", "digest": "sha256:{}", "size": {}}})", type,
                     sha256_of(bytes), bytes.size());
}
std::string image_json(std::string_view layer) {
  return fmt::format(R"({{"schemaVersion": 2, "mediaType": "{}", "config": {}, "layers": [{}]}})",
                     kOciManifest, layer_json("application/vnd.wasm.config.v0+json", "{}"), layer);
}

class RealRegistry : public ::testing::Test {
 protected:
  // Pushes a module with one of the real pushers; returns the digest of its manifest.
  std::string push(ControlPlane& cluster, const std::string& name_and_tag, std::string_view module,
                   ControlPlane::PushForm form) {
    const std::filesystem::path file = directory_.path() / "pushed.wasm";
    EXPECT_TRUE(io::write_file(file, module).has_value());
    const Result<std::string> digest = cluster.push(name_and_tag, file.string(), form);
    EXPECT_TRUE(digest.has_value()) << digest.error().message();
    return digest.value_or("");
  }

  // Puts bytes where the distribution specification expects them.
  void put_blob(ControlPlane& cluster, std::string_view repository, std::string_view bytes) {
    const http::Response begun =
        send(cluster, "POST", url(cluster, repository, "blobs/uploads/"), "", "");
    ASSERT_EQ(begun.status, 202);
    const std::string location(http::find_header(begun.headers, "Location").value_or(""));
    const std::string_view separator = location.contains('?') ? "&" : "?";
    const std::string target =
        fmt::format("{}{}digest=sha256%3A{}", location, separator, sha256_of(bytes));
    ASSERT_EQ(send(cluster, "PUT", target, "application/octet-stream", bytes).status, 201);
  }
  void put_manifest(ControlPlane& cluster, std::string_view repository, std::string_view tag,
                    std::string_view type, std::string_view bytes) {
    const std::string target = url(cluster, repository, fmt::format("manifests/{}", tag));
    const http::Response response = send(cluster, "PUT", target, type, bytes);
    ASSERT_EQ(response.status, 201) << response.body;
  }

  static std::string url(ControlPlane& cluster, std::string_view repository,
                         std::string_view rest) {
    return fmt::format("http://{}/v2/{}/{}", cluster.registry_address(), repository, rest);
  }

  http::Response send(ControlPlane& cluster, std::string_view method, const std::string& target,
                      std::string_view type, std::string_view body) {
    http::Request request;
    request.method = method;
    request.url = target;
    request.body = body;
    request.headers = {
        {"Authorization",
         modules::basic_authorization(cluster.registry_user(), cluster.registry_password())}};
    if (!type.empty()) request.headers.emplace_back("Content-Type", type);
    const Result<http::Response> response =
        io::run_to_end(host_.loop, host_.client.send(std::move(request), {}));
    EXPECT_TRUE(response.has_value()) << response.error().message();
    return response.value_or(http::Response());
  }
  Error failure(std::string_view reference, modules::FetchOptions options = {}) {
    Result<Fetched> fetched = host_.fetch(reference, std::move(options));
    if (fetched) return {ErrorKind::Cancelled, "no error"};
    return std::move(fetched).error();
  }
  void log_in(ControlPlane& cluster) {
    host_.fetcher->use_credentials(docker_config(
        cluster.registry_address(), cluster.registry_user(), cluster.registry_password()));
  }

  TemporaryDirectory directory_;
  FetchingHost host_{directory_.path()};
};

TEST_F(RealRegistry, GivesWhatStowAndOrasPushed) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  log_in(cluster);
  for (const auto form : {ControlPlane::PushForm::Stow, ControlPlane::PushForm::Oras}) {
    const std::string name = form == ControlPlane::PushForm::Stow ? "forms/stow" : "forms/oras";
    const std::string module = module_named(name);
    const std::string digest = push(cluster, name + ":v1", module, form);
    const std::string repository = fmt::format("oci://{}/{}", cluster.registry_address(), name);

    const Result<Fetched> by_tag = host_.fetch(repository + ":v1");
    const Result<Fetched> by_digest = host_.fetch(repository + "@" + digest);

    ASSERT_TRUE(by_tag.has_value()) << by_tag.error().message();
    EXPECT_EQ(by_tag->wasm, module);
    EXPECT_EQ(by_tag->resolved, repository + "@" + digest);
    ASSERT_TRUE(by_digest.has_value()) << by_digest.error().message();
    EXPECT_EQ(by_digest->wasm, module);
  }
}

TEST_F(RealRegistry, ChoosesTheWasmManifestOfAnIndex) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  log_in(cluster);
  const std::string module = module_named("index");
  const std::string other = "layer of another platform";
  const std::string_view repository = "forms/index";
  for (const std::string_view bytes :
       {std::string_view("{}"), std::string_view(module), std::string_view(other)}) {
    put_blob(cluster, repository, bytes);
  }
  const std::string wasm = image_json(layer_json("application/wasm", module));
  const std::string linux_image =
      image_json(layer_json("application/vnd.oci.image.layer.v1.tar", other));
  put_manifest(cluster, repository, "wasm", kOciManifest, wasm);
  put_manifest(cluster, repository, "linux", kOciManifest, linux_image);
  const auto entry = [](std::string_view manifest, std::string_view os, std::string_view cpu) {
    return fmt::format(R"({{"mediaType": "{}", "digest": "sha256:{}", "size": {},
                            "platform": {{"os": "{}", "architecture": "{}"}}}})",
                       kOciManifest, sha256_of(manifest), manifest.size(), os, cpu);
  };
  put_manifest(
      cluster, repository, "all", kOciIndex,
      fmt::format(R"({{"schemaVersion": 2, "mediaType": "{}", "manifests": [{}, {}]}})", kOciIndex,
                  entry(linux_image, "linux", "amd64"), entry(wasm, "wasip1", "wasm")));
  const std::string base = fmt::format("oci://{}/{}", cluster.registry_address(), repository);

  const Result<Fetched> fetched = host_.fetch(base + ":all");

  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  EXPECT_EQ(fetched->wasm, module);
  EXPECT_NE(failure(base + ":linux").message().find("container image"), std::string::npos);
}

TEST_F(RealRegistry, SaysWhoseCredentialsAreMissingOrWrong) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  push(cluster, "private/f:v1", module_named("private"), ControlPlane::PushForm::Stow);
  const std::string reference = fmt::format("oci://{}/private/f:v1", cluster.registry_address());

  const Error anonymous = failure(reference);
  host_.fetcher->use_credentials(docker_config(cluster.registry_address(), "hangar", "hunter2"));
  const Error wrong = failure(reference);
  host_.fetcher->use_credentials(docker_config("other.example", "hangar", "hunter2"));
  const Error elsewhere = failure(reference);

  EXPECT_EQ(anonymous.kind(), ErrorKind::Denied);
  EXPECT_NE(anonymous.message().find("there are no credentials"), std::string::npos)
      << anonymous.message();
  EXPECT_EQ(wrong.kind(), ErrorKind::Denied);
  EXPECT_NE(wrong.message().find("UNAUTHORIZED"), std::string::npos) << wrong.message();
  EXPECT_EQ(wrong.message().find("hunter2"), std::string::npos);
  EXPECT_EQ(elsewhere.kind(), ErrorKind::Denied);
}

TEST_F(RealRegistry, SaysWhatDoesNotExist) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  log_in(cluster);
  push(cluster, "some/f:v1", module_named("some"), ControlPlane::PushForm::Stow);
  const std::string base = fmt::format("oci://{}/some/", cluster.registry_address());

  const Error tag = failure(base + "f:v2");
  const Error digest = failure(base + "f@sha256:" + std::string(64, '0'));
  const Error repository = failure(base + "g:v1");

  EXPECT_EQ(tag.kind(), ErrorKind::NotFound);
  EXPECT_NE(tag.message().find("MANIFEST_UNKNOWN"), std::string::npos) << tag.message();
  EXPECT_EQ(digest.kind(), ErrorKind::NotFound);
  EXPECT_EQ(repository.kind(), ErrorKind::NotFound);
}

TEST_F(RealRegistry, RefusesAModuleThatIsNotThePromisedOne) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  log_in(cluster);
  const std::string module = module_named("promised by tag");
  const std::string right = "sha256_" + sha256_of(module);
  const std::string wrong = "sha256_" + sha256_of("something else");
  push(cluster, "promised/f:" + right, module, ControlPlane::PushForm::Stow);
  push(cluster, "promised/f:" + wrong, module, ControlPlane::PushForm::Stow);
  const std::string base = fmt::format("oci://{}/promised/f:", cluster.registry_address());

  EXPECT_TRUE(host_.fetch(base + right).has_value());
  const Error error = failure(base + wrong);

  EXPECT_EQ(error.kind(), ErrorKind::InvalidInput);
  EXPECT_NE(error.message().find("cannot verify module against expected checksum: wanted"),
            std::string::npos)
      << error.message();
}

TEST_F(RealRegistry, RefusesATruncatedGzip) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  log_in(cluster);
  const std::string packed = gzip_of(module_named("cut off"));
  const std::string cut = packed.substr(0, packed.size() / 2);
  put_blob(cluster, "cut/f", "{}");
  put_blob(cluster, "cut/f", cut);
  put_manifest(cluster, "cut/f", "v1", kOciManifest,
               image_json(layer_json("application/vnd.yoke.wasm.gzip", cut)));

  const Error error = failure(fmt::format("oci://{}/cut/f:v1", cluster.registry_address()));

  EXPECT_EQ(error.kind(), ErrorKind::InvalidInput);
  EXPECT_NE(error.message().find("gzip is cut off"), std::string::npos) << error.message();
}

TEST_F(RealRegistry, SeesThatATagWasMovedAndDownloadsNothingElse) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  log_in(cluster);
  const std::string reference = fmt::format("oci://{}/moving/f:v1", cluster.registry_address());
  push(cluster, "moving/f:v1", module_named("before"), ControlPlane::PushForm::Stow);
  const Result<Fetched> before = host_.fetch(reference);
  ASSERT_TRUE(before.has_value()) << before.error().message();

  const Result<Fetched> same = host_.fetch(reference, {.have_sha256 = before->sha256});
  push(cluster, "moving/f:v1", module_named("after"), ControlPlane::PushForm::Stow);
  const Result<Fetched> moved = host_.fetch(reference, {.have_sha256 = before->sha256});

  ASSERT_TRUE(same.has_value()) << same.error().message();
  EXPECT_TRUE(same->is_unchanged);
  EXPECT_TRUE(same->wasm.empty());
  ASSERT_TRUE(moved.has_value()) << moved.error().message();
  EXPECT_EQ(moved->wasm, module_named("after"));
}

TEST_F(RealRegistry, IsNotNeededForARestart) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  log_in(cluster);
  const std::string reference = fmt::format("oci://{}/kept/f:v1", cluster.registry_address());
  push(cluster, "kept/f:v1", module_named("kept"), ControlPlane::PushForm::Stow);
  ASSERT_TRUE(host_.fetch(reference).has_value());
  ASSERT_TRUE(cluster.kill(Component::Registry).has_value());
  FetchingHost restarted(directory_.path());
  EXPECT_FALSE(restarted.fetch(reference).has_value()) << "without the credential";
  restarted.fetcher->use_credentials(docker_config(
      cluster.registry_address(), cluster.registry_user(), cluster.registry_password()));

  const Result<Fetched> fetched = restarted.fetch(reference);
  const Result<Fetched> pinned = restarted.fetch(fetched ? fetched->resolved : reference);
  const bool is_back = cluster.start_again(Component::Registry).has_value();

  ASSERT_TRUE(is_back);
  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  EXPECT_EQ(fetched->wasm, module_named("kept"));
  EXPECT_FALSE(fetched->stale_because.empty());
  ASSERT_FALSE(pinned.has_value());  // This other text was never fetched.
  EXPECT_EQ(pinned.error().kind(), ErrorKind::Unavailable);
}

// A registry and its surroundings, as far as one module needs them.
class ScriptedRegistry : public ::testing::Test {
 protected:
  static std::string challenge(const std::string& realm) {
    return fmt::format(R"(Bearer realm="{}",service="registry",scope="repository:team/f:pull")",
                       realm);
  }
  std::string reference(const RawServer& server) const {
    return fmt::format("oci://{}/team/f:v1", server.address());
  }

  const std::string module_ = module_named("scripted");
  const std::string manifest_ = image_json(layer_json("application/wasm", module_));
  TemporaryDirectory directory_;
  FetchingHost host_{directory_.path()};
};

TEST_F(ScriptedRegistry, GetsATokenAndShowsItToTheRegistryOnly) {
  RawServer object_store([&](const Request&) { return answer(200, module_); });
  RawServer token_server([&](const Request& request) {
    if (request.header("Authorization") != "Basic dXNlcjpwYXNz") return answer(401, "{}");
    return answer(200, R"({"token": "let-me-in"})");
  });
  RawServer registry([&](const Request& request) {
    if (request.header("Authorization") != "Bearer let-me-in") {
      return answer(401, "{}", {{"WWW-Authenticate", challenge(token_server.url("/token"))}});
    }
    if (request.path.contains("/blobs/")) {
      return answer(307, "", {{"Location", object_store.url("/object?signature=s")}});
    }
    return answer(200, manifest_);
  });
  host_.fetcher->use_credentials(docker_config(registry.address(), "user", "pass"));

  const Result<Fetched> fetched = host_.fetch(reference(registry));

  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  EXPECT_EQ(fetched->wasm, module_);
  ASSERT_EQ(token_server.requests().size(), 1U);
  EXPECT_EQ(token_server.requests()[0].path,
            "/token?service=registry&scope=repository%3Ateam%2Ff%3Apull");
  ASSERT_EQ(object_store.requests().size(), 1U);
  EXPECT_EQ(object_store.requests()[0].header("Authorization"), "");
  EXPECT_EQ(registry.requests()[0].path, "/v2/team/f/manifests/v1");
  EXPECT_EQ(registry.requests()[0].header("Authorization"), "");
}

TEST_F(ScriptedRegistry, DecidesAloneWhichTokenServerGetsTheCredentials) {
  RawServer thief([&](const Request&) { return answer(200, R"({"token": "stolen"})"); });
  RawServer object_store([&](const Request&) {
    return answer(401, "{}", {{"WWW-Authenticate", challenge(thief.url("/token"))}});
  });
  RawServer registry([&](const Request& request) {
    if (request.path.contains("/blobs/")) {
      return answer(307, "", {{"Location", object_store.url("/object")}});
    }
    return answer(200, manifest_);
  });
  host_.fetcher->use_credentials(docker_config(registry.address(), "user", "pass"));

  const Result<Fetched> fetched = host_.fetch(reference(registry));

  ASSERT_FALSE(fetched.has_value());
  EXPECT_EQ(fetched.error().kind(), ErrorKind::Denied);
  EXPECT_TRUE(thief.requests().empty());
}

TEST_F(ScriptedRegistry, IsAskedAgainOnceTheCredentialIsAnother) {
  std::atomic<bool> is_away = false;
  RawServer registry([&](const Request& request) {
    if (is_away) return answer(503, "");
    const std::string authorization = request.header("Authorization");
    if (authorization != modules::basic_authorization("user", "first-password")) {
      return answer(401, "{}", {{"WWW-Authenticate", "Basic realm=\"registry\""}});
    }
    return answer(200, request.path.contains("/blobs/") ? module_ : manifest_);
  });
  const auto log_in_with = [&](std::string_view password) {
    host_.fetcher->use_credentials(docker_config(registry.address(), "user", password));
  };
  const auto kind_of = [&](const std::string& text) {
    const Result<Fetched> fetched = host_.fetch(text);
    return fetched ? "given" : std::string(name_of(fetched.error().kind()));
  };
  log_in_with("first-password");
  const std::string pinned =
      fmt::format("oci://{}/team/f@sha256:{}", registry.address(), sha256_of(manifest_));
  ASSERT_EQ(kind_of(pinned), "given");
  const std::size_t asked = registry.requests().size();
  EXPECT_EQ(kind_of(pinned), "given");
  EXPECT_EQ(registry.requests().size(), asked) << "the proof is fresh";

  log_in_with("rotated-password");
  EXPECT_EQ(kind_of(pinned), "Denied");
  is_away = true;
  EXPECT_EQ(kind_of(pinned), "Unavailable")
      << "what the first credential has proven counts no more";
  host_.fetcher->use_credentials({});
  EXPECT_EQ(kind_of(pinned), "Unavailable");
  log_in_with("first-password");
  EXPECT_EQ(kind_of(pinned), "given");

  const Result<std::string> index =
      io::read_file(directory_.path() / "store" / "index.json", limits::kMiB);
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->find("password"), std::string::npos);
}

TEST_F(ScriptedRegistry, TradesAnIdentityTokenForAnAccessToken) {
  RawServer token_server([&](const Request& request) {
    const bool is_right = request.method == "POST" &&
                          request.body.contains("grant_type=refresh_token") &&
                          request.body.contains("refresh_token=refresh-me");
    return is_right ? answer(200, R"({"access_token": "fresh"})") : answer(400, "{}");
  });
  RawServer registry([&](const Request& request) {
    if (request.header("Authorization") != "Bearer fresh") {
      return answer(401, "{}", {{"WWW-Authenticate", challenge(token_server.url("/token"))}});
    }
    return answer(200, request.path.contains("/blobs/") ? module_ : manifest_);
  });
  const auto config = modules::DockerConfig::parse(fmt::format(
      R"({{"auths": {{"{}": {{"identitytoken": "refresh-me"}}}}}})", registry.address()));
  host_.fetcher->use_credentials(*config);

  const Result<Fetched> fetched = host_.fetch(reference(registry));

  ASSERT_TRUE(fetched.has_value()) << fetched.error().message();
  EXPECT_EQ(fetched->wasm, module_);
}

TEST_F(ScriptedRegistry, DoesNotAskAgainAndAgainWithATokenThatIsRefused) {
  RawServer token_server([](const Request&) { return answer(200, R"({"token": "useless"})"); });
  RawServer registry([&](const Request&) {
    return answer(401, R"({"errors": [{"code": "DENIED", "message": "not for you"}]})",
                  {{"WWW-Authenticate", challenge(token_server.url("/token"))}});
  });

  const Result<Fetched> fetched = host_.fetch(reference(registry));

  ASSERT_FALSE(fetched.has_value());
  EXPECT_EQ(fetched.error().kind(), ErrorKind::Denied);
  EXPECT_NE(fetched.error().message().find("DENIED: not for you"), std::string::npos)
      << fetched.error().message();
  EXPECT_EQ(registry.requests().size(), 2U);
}

TEST_F(ScriptedRegistry, BelievesNoBytesThatAreNotOfTheDigest) {
  RawServer lies_about_blobs([&](const Request& request) {
    std::string other = module_;
    other.back() = 'X';
    return answer(200, request.path.contains("/blobs/") ? other : manifest_);
  });
  RawServer lies_about_manifests([&](const Request&) { return answer(200, manifest_); });

  const Result<Fetched> blob = host_.fetch(reference(lies_about_blobs));
  const Result<Fetched> manifest = host_.fetch(fmt::format(
      "oci://{}/team/f@sha256:{}", lies_about_manifests.address(), std::string(64, '1')));

  ASSERT_FALSE(blob.has_value());
  EXPECT_EQ(blob.error().kind(), ErrorKind::InvalidInput);
  EXPECT_NE(blob.error().message().find("are not those of blob"), std::string::npos);
  ASSERT_FALSE(manifest.has_value());
  EXPECT_EQ(manifest.error().kind(), ErrorKind::InvalidInput);
  EXPECT_NE(manifest.error().message().find("sent another one"), std::string::npos);
}

TEST_F(ScriptedRegistry, ReadsNoMoreThanTheManifestSays) {
  RawServer registry([&](const Request& request) {
    return answer(200, request.path.contains("/blobs/") ? module_ + "more" : manifest_);
  });

  const Result<Fetched> fetched = host_.fetch(reference(registry));

  ASSERT_FALSE(fetched.has_value());
  EXPECT_EQ(fetched.error().kind(), ErrorKind::LimitExceeded);
}

TEST_F(ScriptedRegistry, SurvivesAnswersThatAreNoManifest) {
  for (const std::string& body :
       {std::string("<html>"), std::string(), std::string(5'000'000, '[')}) {
    RawServer registry([&](const Request&) { return answer(200, body); });

    EXPECT_FALSE(host_.fetch(reference(registry)).has_value()) << body.substr(0, 10);
  }
}

TEST_F(ScriptedRegistry, GivesNoManifestThatIsLargerThanThatOfAnyModule) {
  const std::string padded = manifest_ + std::string(limits::kManifestBytesMax, ' ');
  RawServer registry([&](const Request& request) {
    return answer(200, request.path.contains("/blobs/") ? module_ : padded);
  });

  const Result<Fetched> fetched = host_.fetch(reference(registry));

  ASSERT_FALSE(fetched.has_value());
  EXPECT_EQ(fetched.error().kind(), ErrorKind::LimitExceeded);
}

TEST_F(ScriptedRegistry, SaysThatItCannotBeReached) {
  const Result<Fetched> fetched = host_.fetch("oci://127.0.0.1:1/team/f:v1");

  ASSERT_FALSE(fetched.has_value());
  EXPECT_EQ(fetched.error().kind(), ErrorKind::Unavailable);
  EXPECT_NE(fetched.error().message().find("module oci://127.0.0.1:1/team/f:v1"), std::string::npos)
      << fetched.error().message();
}

}  // namespace
}  // namespace hangar::testing
