#include "airways/revision.h"

#include "airways/limits.h"
#include "airways/resource_ref.h"
#include "base/base64.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "json/go_text.h"
#include "json/value.h"
#include "kube/object.h"
#include "modules/limits.h"

#include <fmt/format.h>
#include <zconf.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

constexpr std::string_view kRevisionKind = "revision";
constexpr std::string_view kSourceUrl = "internal.yoke/source-url";
constexpr std::string_view kSourceChecksum = "internal.yoke/source-checksum";
constexpr std::string_view kCreatedAt = "internal.yoke/created-at";
constexpr std::string_view kActiveAt = "internal.yoke/active-at";
constexpr std::string_view kResourceCount = "internal.yoke/resources";

// Go's zero time is before every other: yoke never takes such a revision for the active one.
constexpr std::string_view kNever = "0001-01-01T00:00:00Z";

// zlib: the largest window, in a gzip frame.
constexpr int kGzipWindowBits = 15 + 16;
constexpr std::string_view kGzipMagic = "\x1f\x8b";

std::string gzip(std::string_view text) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits, /*memLevel=*/8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string bytes(deflateBound(&stream, text.size()), '\0');
  // zlib's interface predates const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  const int end = deflate(&stream, Z_FINISH);
  bytes.resize(end == Z_STREAM_END ? stream.total_out : 0);
  deflateEnd(&stream);
  return bytes;
}

Result<std::string> gunzip(std::string_view bytes, std::uint64_t bytes_max) {
  constexpr std::size_t kChunkBytes = 64 * limits::kKiB;
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindowBits) != Z_OK) {
    return fail(ErrorKind::LimitExceeded, "no memory to decompress a revision");
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  int status = Z_OK;
  while (status == Z_OK && text.size() <= bytes_max) {
    const std::size_t filled = text.size();
    text.resize(filled + kChunkBytes);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + filled);
    stream.avail_out = kChunkBytes;
    status = inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (text.size() > bytes_max) {
    return fail(ErrorKind::LimitExceeded, fmt::format("is larger than {} bytes", bytes_max));
  }
  if (status != Z_STREAM_END) return fail(ErrorKind::Corrupt, "revision is not complete gzip data");
  return text;
}

Result<std::string> decode(std::string_view text) {
  if (text.size() > 2 * limits::kObjectBytesMax) {
    return fail(ErrorKind::LimitExceeded, "revision is larger than any Secret");
  }
  std::optional<std::string> bytes = base64_decode(text);
  if (!bytes) return fail(ErrorKind::Corrupt, "revision is not base64");
  return *std::move(bytes);
}

Result<std::optional<WallTime>> parse_time(const json::Value& secret, std::string_view key) {
  const std::string_view text = kube::annotation_of(secret, key);
  // WallTime cannot hold the zero time.
  if (text.starts_with("0001-01-01T")) return std::optional<WallTime>();
  Result<WallTime> time = parse_rfc3339(text);
  if (!time) return std::unexpected(std::move(time).error().in(key));
  return std::optional(*time);
}

Result<Stages> stages_of(json::Value document) {
  // Go writes a list without elements as null.
  if (document.is_null()) return Stages{};
  const auto corrupt = [] {
    return fail(ErrorKind::Corrupt, "revision is not a list of lists of resources");
  };
  json::Array* items = document.if_array();
  if (items == nullptr) return corrupt();
  Stages stages;
  for (json::Value& item : *items) {
    if (item.is_null()) continue;
    json::Array* resources = item.if_array();
    if (resources == nullptr) return corrupt();
    Stage stage;
    for (json::Value& resource : *resources) {
      const ResourceRef ref = ref_of(resource);
      if (ref.kind.kind.empty() || ref.name.empty()) return corrupt();
      stage.push_back(std::move(resource));
    }
    if (!stage.empty()) stages.push_back(std::move(stage));
  }
  return stages;
}

bool is_label_value(std::string_view text) {
  const auto is_alphanumeric = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !text.empty() && text.size() <= 63 && is_alphanumeric(text.front()) &&
         is_alphanumeric(text.back()) && std::ranges::all_of(text, [&](char c) {
           return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

std::string revision_selector() {
  return fmt::format("{}={}", kRevisionKindLabel, kRevisionKind);
}

std::string history_selector(std::string_view release) {
  return fmt::format("{},{}={}", revision_selector(), kRevisionReleaseLabel, sha1_hex(release));
}

// By the kind, too: yoke's lock of a release has the plain name in the same label.
std::string deprecated_history_selector(std::string_view release) {
  if (!is_label_value(release)) return {};
  return fmt::format("{},{}={}", revision_selector(), kRevisionReleaseLabel, release);
}

std::optional<json::Value> migration_patch(const json::Value& secret, std::string_view release) {
  const std::string label = sha1_hex(release);
  if (kube::label_of(secret, kRevisionReleaseLabel) == label) return std::nullopt;
  json::Value patch = json::Object();
  json::set_at(patch, {"metadata", "labels", kRevisionReleaseLabel}, json::Value(label));
  json::set_at(patch, {"metadata", "annotations", kReleaseNameAnnotation}, json::Value(release));
  return patch;
}

Result<Revision> revision_of(const json::Value& secret) {
  const ResourceRef ref = ref_of(secret);
  const auto in_secret = [&](Error error) {
    return std::unexpected(std::move(error).in("revision " + ref.name));
  };
  if (kube::label_of(secret, kRevisionKindLabel) != kRevisionKind) {
    return in_secret({ErrorKind::InvalidInput, "is not labelled as one"});
  }
  Revision revision;
  revision.secret = ref.name;
  revision.namespace_ = ref.namespace_;
  revision.release = kube::annotation_of(secret, kReleaseNameAnnotation);
  // Before yoke hashed release names, they were the label.
  if (revision.release.empty()) revision.release = kube::label_of(secret, kRevisionReleaseLabel);
  revision.source = {.url = std::string(kube::annotation_of(secret, kSourceUrl)),
                     .checksum = std::string(kube::annotation_of(secret, kSourceChecksum))};
  Result<std::optional<WallTime>> time = parse_time(secret, kCreatedAt);
  if (!time) return in_secret(std::move(time).error());
  revision.created_at = time->value_or(WallTime{});
  time = parse_time(secret, kActiveAt);
  if (!time) return in_secret(std::move(time).error());
  revision.active_at = *time;

  const std::string_view count = kube::annotation_of(secret, kResourceCount);
  // As in yoke, a text that is not a number counts as 0. It is only shown.
  std::from_chars(count.data(), count.data() + count.size(), revision.resource_count);
  return revision;
}

RevisionTimes times_of(const json::Value& secret) {
  const auto to_second = [&secret](std::string_view key) {
    constexpr std::size_t kSize = std::string_view("2006-01-02T15:04:05").size();
    std::string text(kube::annotation_of(secret, key).substr(0, kSize));
    std::ranges::replace(text, 'T', ' ');
    return text;
  };
  return {.created_at = to_second(kCreatedAt), .active_at = to_second(kActiveAt)};
}

Result<UnpackedRevision> unpack(const json::Value& secret, std::uint64_t bytes_max) {
  const auto in_secret = [&](Error error) {
    return std::unexpected(std::move(error).in("revision " + ref_of(secret).name));
  };
  Result<std::string> data = decode(json::string_at(secret, {"data", "resources"}));
  if (!data) return in_secret(std::move(data).error());
  // Older versions of yoke did not compress.
  if (data->starts_with(kGzipMagic)) data = gunzip(*data, bytes_max);
  if (!data) return in_secret(std::move(data).error());
  if (data->size() > bytes_max) {
    return in_secret({ErrorKind::LimitExceeded, fmt::format("is larger than {} bytes", bytes_max)});
  }
  if (json::parsed_bytes_max(*data) > limits::kRevisionMemoryBytesMax) {
    return in_secret({ErrorKind::LimitExceeded, fmt::format("takes more than {} bytes of memory",
                                                            limits::kRevisionMemoryBytesMax)});
  }
  Result<json::Value> document = json::parse(*data);
  if (!document) return in_secret(std::move(document).error());
  Result<Stages> stages = stages_of(*std::move(document));
  if (!stages) return in_secret(std::move(stages).error());
  return UnpackedRevision{.stages = *std::move(stages), .bytes = data->size()};
}

Result<json::Value> secret_of(std::string_view release, std::string_view namespace_,
                              const Stages& stages, const Source& source, WallTime created_at,
                              std::optional<WallTime> active_at) {
  json::Array document;
  for (const Stage& stage : stages)
    document.emplace_back(json::Array(stage.begin(), stage.end()));
  // Go writes a list without elements as null.
  const std::string text =
      document.empty() ? "null" : json::dump_as_go(json::Value(std::move(document)));
  // unpack() would refuse it.
  if (json::parsed_bytes_max(text) > limits::kRevisionMemoryBytesMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the release's {} resources take more than {} bytes of memory when its "
                            "history is read: let the flight print less (long lists of short "
                            "values first), or divide it into several Airways",
                            resource_count(stages), limits::kRevisionMemoryBytesMax));
  }
  const std::string created = to_rfc3339_nano(created_at);
  const std::string data = gzip(text);
  if (data.empty() || data.size() > limits::kSecretBytesMax) {
    return fail(
        ErrorKind::LimitExceeded,
        fmt::format("the release's {} resources take {} bytes compressed, and its history is kept "
                    "in a Secret, which holds {}: let the flight print less (large ConfigMaps and "
                    "CustomResourceDefinitions first), or divide it into several Airways",
                    resource_count(stages), data.size(), limits::kSecretBytesMax));
  }
  const std::string digest =
      sha256_hex(fmt::format("{}\n{}\n{}\n{}", namespace_, release, created, text));
  return json::Value(json::Object{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata",
       json::Object{{"name", "yoke." + digest.substr(0, 12)},
                    {"namespace", namespace_},
                    {"labels", json::Object{{kRevisionKindLabel, kRevisionKind},
                                            {kRevisionReleaseLabel, sha1_hex(release)}}},
                    {"annotations",
                     json::Object{{kCreatedAt, created},
                                  {kActiveAt, active_at ? to_rfc3339_nano(*active_at) : kNever},
                                  {kResourceCount, std::to_string(resource_count(stages))},
                                  {kSourceUrl, source.url},
                                  {kSourceChecksum, source.checksum},
                                  {kReleaseNameAnnotation, release}}}}},
      {"type", "Opaque"},
      {"data", json::Object{{"resources", base64_encode(data)}}},
  });
}

json::Value activation_patch(WallTime now) {
  json::Value patch = json::Object();
  json::set_at(patch, {"metadata", "annotations", kActiveAt}, json::Value(to_rfc3339_nano(now)));
  return patch;
}

void History::add(Revision revision) {
  const auto position =
      std::ranges::upper_bound(revisions, revision.created_at, {}, &Revision::created_at);
  revisions.insert(position, std::move(revision));
}

const Revision* History::active() const {
  const auto found = std::ranges::max_element(revisions, {}, &Revision::active_at);
  return found == revisions.end() || !found->active_at ? nullptr : &*found;
}

std::size_t History::active_number() const {
  const Revision* const found = active();
  return found == nullptr ? 1 : static_cast<std::size_t>(found - revisions.data()) + 1;
}

std::vector<const Revision*> History::interrupted() const {
  const Revision* last = active();
  std::vector<const Revision*> found;
  for (const Revision& revision : revisions) {
    if (revision.active_at) continue;
    if (last == nullptr || revision.created_at > last->created_at) found.push_back(&revision);
  }
  return found;
}

std::vector<std::string> History::beyond(std::optional<std::uint32_t> count_max) const {
  if (!count_max) return {};
  const std::vector<const Revision*> pending = interrupted();
  std::vector<const Revision*> ended;
  for (const Revision& revision : revisions) {
    if (std::ranges::find(pending, &revision) == pending.end()) ended.push_back(&revision);
  }
  // Most recently active first: the active one stays in any case.
  std::ranges::sort(ended, std::greater(), [](const Revision* revision) {
    return std::pair(revision->active_at, revision->created_at);
  });
  std::vector<std::string> names;
  for (std::size_t i = std::max<std::size_t>(*count_max, 1); i < ended.size(); ++i) {
    names.push_back(ended[i]->secret);
  }
  return names;
}

Result<> check_pinned(const History& history, const Source& source) {
  for (const Revision& revision : history.revisions) {
    if (revision.source.url == source.url && revision.source.checksum != source.checksum) {
      return fail(
          ErrorKind::InvalidInput,
          fmt::format("module \"{}\" has changed since last use: got \"{}\" but wanted \"{}\"",
                      source.url, source.checksum, revision.source.checksum));
    }
  }
  return {};
}

bool same_resources(const Stages& left, const Stages& right) {
  return std::ranges::equal(left, right, [](const Stage& a, const Stage& b) {
    return std::ranges::equal(a, b, json::equal);
  });
}

bool is_covered(const Stages& stages, const Stages& by) {
  std::set<ResourceRef> known;
  for (const Stage& stage : by) {
    for (const json::Value& resource : stage)
      known.insert(ref_of(resource));
  }
  return std::ranges::all_of(stages, [&](const Stage& stage) {
    return std::ranges::all_of(
        stage, [&](const json::Value& resource) { return known.contains(ref_of(resource)); });
  });
}

Stages merge_inventory(Stages active, const std::vector<Stages>& interrupted) {
  for (const Stages& stages : interrupted) {
    std::ranges::copy(stages, std::back_inserter(active));
  }
  return active;
}

}  // namespace hangar::airways
