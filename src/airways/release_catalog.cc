#include "airways/release_catalog.h"

#include "airways/limits.h"
#include "airways/revision.h"
#include "base/digest.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

// Reads the Secrets of one namespace, or of all, into `reader`.
io::Task<Result<>> read_namespace(const kube::Client& client, std::string namespace_,
                                  std::string selector, std::size_t& count, CatalogReader& reader,
                                  std::stop_token stop) {
  constexpr std::uint32_t kPageSize = 50;  // A Secret may have 256 KiB of annotations.
  kube::ListOptions options{.namespace_ = std::move(namespace_),
                            .label_selector = std::move(selector),
                            .page_size = kPageSize,
                            .detail = kube::Detail::Metadata,
                            .holds = [&](const kube::ObjectPtr& secret) {
                              if (++count <= limits::kCatalogRevisionsMax)
                                reader.add(secret->to_value());
                              return kube::ObjectPtr();  // The reader has what it needs.
                            }};
  HANGAR_CO_TRY(co_await client.list(kube::secret_resource(), std::move(options), std::move(stop)));
  if (count > limits::kCatalogRevisionsMax) {
    co_return fail(ErrorKind::LimitExceeded,
                   fmt::format("there are {} revisions of releases, and the limit is {}: name a "
                               "namespace",
                               count, limits::kCatalogRevisionsMax));
  }
  co_return Result<>();
}

// Selects the labels that yoke gives to revisions now, and those that it gave before.
std::string selector_of(const std::string& release) {
  if (release.empty()) return revision_selector();
  if (deprecated_history_selector(release).empty()) return history_selector(release);
  return fmt::format("{},{} in ({},{})", revision_selector(), kRevisionReleaseLabel,
                     sha1_hex(release), release);
}

}  // namespace

io::Task<Result<Catalog>> read_catalog(kube::Client client, CatalogQuery query,
                                       std::stop_token stop) {
  const std::string selector = selector_of(query.release);
  std::size_t count = 0;
  CatalogReader reader;
  const Result<> read =
      co_await read_namespace(client, query.namespace_, selector, count, reader, stop);
  if (read) co_return reader.take();
  if (read.error().kind() != ErrorKind::Denied || !query.namespace_.empty()) {
    co_return std::unexpected(read.error());
  }
  // Not allowed for all namespaces at once: reads those where it is.
  const kube::List namespaces =
      HANGAR_CO_TRY(co_await client.list(kube::namespace_resource(), {}, stop));
  for (const kube::ObjectPtr& object : namespaces.items) {
    const Result<> one =
        co_await read_namespace(client, object->key().name, selector, count, reader, stop);
    if (!one && one.error().kind() != ErrorKind::Denied &&
        one.error().kind() != ErrorKind::NotFound) {
      co_return std::unexpected(Error(one.error()).in(object->key().name));
    }
  }
  co_return reader.take();
}

void CatalogReader::add(const json::Value& secret) {
  Result<Revision> revision = revision_of(secret);
  if (!revision) {
    unreadable_.push_back(
        fmt::format("{}: {}", kube::key_of(secret).to_string(), revision.error().message()));
    return;
  }
  CatalogEntry& entry = entries_[{revision->namespace_, revision->release}];
  entry.name = revision->release;
  entry.namespace_ = revision->namespace_;
  entry.times.insert_or_assign(revision->secret, times_of(secret));
  entry.history.add(*std::move(revision));
}

Catalog CatalogReader::take() {
  Catalog catalog{.unreadable = std::move(unreadable_)};
  for (auto& [key, entry] : entries_)
    catalog.entries.push_back(std::move(entry));
  entries_.clear();
  return catalog;
}

}  // namespace hangar::airways
