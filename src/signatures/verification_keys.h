// The keys that verify modules, from a file, a directory, or a Secret in the host's namespace.
// Changes apply without a restart.
//
// If the source cannot be read, the last keys stay valid. A deleted Secret, or a directory without
// a key, means that there are no keys; then no module may run.
//
// Loop thread.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/cache/secret_watch.h"
#include "kube/object.h"
#include "schematics/keys.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::signatures {

// The keys in the values whose names end in `.pem`. InvalidInput names the value that is not a key.
[[nodiscard]] Result<schematics::PublicKeys> keys_in_secret(const json::Value& secret);

class VerificationKeys {
 public:
  struct Options {
    std::filesystem::path path = {};  // Empty: use the Secret.
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

  // `listener` may be called with unchanged keys.
  VerificationKeys(Parts parts, Options options, Listener listener);
  VerificationKeys(const VerificationKeys&) = delete;
  VerificationKeys& operator=(const VerificationKeys&) = delete;
  // Requires that it is stopped.
  ~VerificationKeys();

  void start();
  [[nodiscard]] io::Task<void> stop();

  // Unavailable until keys have been read; the message has the last error.
  [[nodiscard]] Result<> check() const;

 private:
  [[nodiscard]] io::Task<void> keep_reading();
  void read_secret(const kube::ObjectPtr& secret);
  void take(Result<schematics::PublicKeys> keys);

  const Parts parts_;
  const Options options_;
  const Listener listener_;
  std::optional<kube::SecretWatch> secret_;
  bool has_keys_ = false;
  std::optional<Error> problem_;
  std::stop_source stop_;
  std::optional<io::OneShot<bool>> ended_;
};

}  // namespace hangar::signatures
