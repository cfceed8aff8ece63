// The trust anchors of keyless signatures: the certificate authorities, transparency logs and
// timestamp authorities of a Sigstore instance, from its TrustedRoot document. An administrator
// provides the file. Pure; any thread.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "schematics/keys.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::sigstore {

// The number of authorities, and of logs of each kind. The public instance has two or three.
inline constexpr std::size_t kTrustedMax = 32;
inline constexpr std::size_t kChainMax = 8;

struct Period {
  WallTime start = WallTime::min();
  WallTime end = WallTime::max();

  [[nodiscard]] bool contains(WallTime time) const { return start <= time && time <= end; }
};

// A transparency log. Checkpoints, promises and certificate timestamps are by its key.
struct Log {
  std::string id;  // 32 bytes.
  schematics::PublicKey key;
  Period valid;
};

// An authority for certificates or timestamps.
struct Authority {
  std::vector<std::string> chain;  // In DER; the last one is the trust anchor.
  Period valid;
};

struct TrustRoot {
  std::vector<Authority> certificate_authorities;  // Not empty.
  std::vector<Log> logs;                           // Logs of signatures (Rekor); not empty.
  std::vector<Log> certificate_logs;               // Not empty.
  std::vector<Authority> timestamp_authorities;
  std::string id;  // Equal only for equal documents.
};

// Null when no log has that id.
[[nodiscard]] const Log* find_log(const std::vector<Log>& logs, std::string_view id);

// Reads a TrustedRoot (v0.1 and v0.2). InvalidInput names the field.
[[nodiscard]] Result<TrustRoot> read_trust_root(const json::Value& document);

}  // namespace hangar::sigstore
