// The keys that modules are verified with, as they are now: of a file or a directory, or of a
// Secret in the host's namespace. Keys that come and go count without a restart.
//
// What cannot be read changes nothing: the keys that were read last go on. A Secret that is gone,
// or a directory without a key, is no key, with which no module may run.
// Loop thread.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/secret_watch.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "schematics/keys.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::host {

// Of the values whose names end in `.pem`. InvalidInput names the one that is no key.
[[nodiscard]] Result<schematics::PublicKeys> keys_in_secret(const json::Value& secret);

class VerificationKeys {
 public:
  struct Options {
    std::filesystem::path path = {};  // Empty: the Secret.
    std::string namespace_ = {};
    std::string secret = {};
  };
  struct Parts {
    io::Loop& loop;
    io::Workers& workers;
    kube::Cache& cache;
    Log log;
  };
  using Listener = std::function<void(schematics::PublicKeys)>;

  // `listener` may be told of keys that are the same.
  VerificationKeys(Parts parts, Options options, Listener listener);
  VerificationKeys(const VerificationKeys&) = delete;
  VerificationKeys& operator=(const VerificationKeys&) = delete;
  // Stop it before.
  ~VerificationKeys();

  void start();
  [[nodiscard]] io::Task<void> stop();

  // Unavailable until there were keys, and says why the last look failed.
  [[nodiscard]] Result<> check() const;

 private:
  [[nodiscard]] io::Task<void> keep_reading();
  void read_secret(const kube::ObjectPtr& secret);
  void take(Result<schematics::PublicKeys> keys);

  const Parts parts_;
  const Options options_;
  const Listener listener_;
  std::optional<SecretWatch> secret_;
  bool has_keys_ = false;
  std::optional<Error> problem_;
  std::stop_source stop_;
  std::optional<io::OneShot<bool>> ended_;
};

}  // namespace hangar::host
