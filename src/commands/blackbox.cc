#include "commands/blackbox.h"

#include "airways/limits.h"
#include "airways/release_catalog.h"
#include "airways/release_history.h"
#include "airways/revision.h"
#include "base/consumer.h"
#include "base/log.h"
#include "base/result.h"
#include "commands/release_session.h"
#include "commands/release_text.h"
#include "commands/rounded_table.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "io/task.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

using airways::CatalogEntry;
using airways::History;
using airways::Revision;

std::string releases_table(const std::vector<CatalogEntry>& entries) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(entries.size());
  for (const CatalogEntry& entry : entries) {
    rows.push_back({entry.name, entry.namespace_, std::to_string(entry.history.active_number())});
  }
  return rounded_table({{"release"}, {"namespace"}, {"revision id", Align::Right}}, rows);
}

// Newest first.
std::string revisions_table(const CatalogEntry& entry) {
  const std::vector<Revision>& revisions = entry.history.revisions;
  const std::size_t active = entry.history.active_number();
  std::vector<std::vector<std::string>> rows;
  for (std::size_t number = revisions.size(); number > 0; --number) {
    const Revision& revision = revisions[number - 1];
    const airways::RevisionTimes& times = entry.times.at(revision.secret);
    rows.push_back({fmt::format("{}{}", number, number == active ? " (current)" : ""),
                    std::to_string(revision.resource_count), revision.source.url,
                    revision.source.checksum, times.active_at, times.created_at});
  }
  return rounded_table(
      {{"id"}, {"resources", Align::Right}, {"flight"}, {"sha"}, {"active at"}, {"created at"}},
      rows);
}

class Blackbox {
 public:
  Blackbox(ReleaseSession& session, const BlackboxOptions& options)
      : session_(session), options_(options) {}

  [[nodiscard]] io::Task<Result<Shown>> run() {
    Result<airways::Catalog> catalog = co_await airways::read_catalog(
        session_.client,
        {.namespace_ = options_.release.namespace_, .release = options_.release.name},
        session_.stop());
    if (!catalog) {
      co_return std::unexpected(std::move(catalog).error().in("failed to get revisions"));
    }
    Shown shown{.warnings = std::move(catalog->unreadable)};
    if (options_.release.name.empty()) {
      shown.text = releases_table(catalog->entries);
      co_return shown;
    }
    const CatalogEntry entry = HANGAR_CO_TRY(choose(std::move(catalog->entries)));
    shown.text = options_.revision == 0 ? revisions_table(entry)
                                        : HANGAR_CO_TRY(co_await revision_text(entry));
    co_return shown;
  }

 private:
  [[nodiscard]] Result<CatalogEntry> choose(std::vector<CatalogEntry> entries) const {
    const std::string& name = options_.release.name;
    std::erase_if(entries, [&](const CatalogEntry& entry) { return entry.name != name; });
    if (entries.empty()) {
      return fail(ErrorKind::NotFound, fmt::format("release \"{}\" not found", name));
    }
    if (entries.size() > 1) {
      return fail(
          ErrorKind::InvalidInput,
          fmt::format("release \"{}\" found in more than one namespace: specify namespace", name));
    }
    return std::move(entries.front());
  }

  [[nodiscard]] io::Task<Result<std::string>> revision_text(const CatalogEntry& entry) {
    const std::string left = HANGAR_CO_TRY(co_await resources_of(entry, options_.revision));
    if (options_.compared_with == 0) co_return left;
    const std::string right = HANGAR_CO_TRY(co_await resources_of(entry, options_.compared_with));
    const std::string left_name = fmt::format("revision {}", options_.revision);
    const std::string right_name = fmt::format("revision {}", options_.compared_with);
    co_return release_difference({.name = left_name, .text = left},
                                 {.name = right_name, .text = right}, options_.context_lines,
                                 options_.color);
  }

  [[nodiscard]] io::Task<Result<std::string>> resources_of(const CatalogEntry& entry,
                                                           std::size_t number) {
    if (number > entry.history.revisions.size()) {
      co_return fail(ErrorKind::NotFound, fmt::format("revision {} not found", number));
    }
    const Result<airways::UnpackedRevision> unpacked = co_await airways::read_revision(
        session_.workers, unnamed_consumer(), session_.client,
        {.namespace_ = entry.namespace_, .name = entry.history.revisions[number - 1].secret},
        limits::kRevisionBytesMax, session_.stop());
    if (!unpacked) {
      co_return std::unexpected(
          Error(unpacked.error())
              .in(fmt::format("failed to get resources for revision {}", number)));
    }
    co_return release_yaml(unpacked->stages);
  }

  ReleaseSession& session_;
  const BlackboxOptions& options_;
};

}  // namespace

Result<Shown> blackbox(const host::Config& config, const BlackboxOptions& options, const Log& log) {
  ReleaseSession session(config, HANGAR_TRY(host::find_login(config)), log);
  Blackbox work(session, options);
  return session.run(work.run());
}

}  // namespace hangar::commands
