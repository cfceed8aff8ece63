// All releases whose histories a client may read, written by a host, by yoke's command or by ours.
#pragma once

#include "airways/revision.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"

#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::airways {

struct CatalogEntry {
  std::string name;
  std::string namespace_;
  History history;
  std::map<std::string, RevisionTimes> times;  // Of its revisions, by the name of their Secret.
};

struct Catalog {
  std::vector<CatalogEntry> entries;    // By namespace, then name.
  std::vector<std::string> unreadable;  // One sentence for each Secret that is not a revision.
};

struct CatalogQuery {
  std::string namespace_ = {};  // Empty: all, or those where Secrets may be listed.
  std::string release = {};     // Empty: all.
};

// Reads names and annotations, no contents. Errors: LimitExceeded, and the server's.
[[nodiscard]] io::Task<Result<Catalog>> read_catalog(kube::Client client, CatalogQuery query,
                                                     std::stop_token stop);

// Groups revisions by release. A Secret that is not a revision goes into Catalog::unreadable.
class CatalogReader {
 public:
  void add(const json::Value& secret);
  [[nodiscard]] Catalog take();

 private:
  std::map<std::pair<std::string, std::string>, CatalogEntry> entries_;  // By namespace and name.
  std::vector<std::string> unreadable_;
};

}  // namespace hangar::airways
