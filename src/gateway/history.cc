#include "gateway/history.h"

#include "base/assert.h"
#include "gateway/limits.h"
#include "gateway/request_target.h"
#include "kube/cache/store.h"
#include "kube/object.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

using kube::Delta;
using kube::ObjectPtr;

ObjectPtr with_version(const ObjectPtr& object, std::uint64_t version) {
  if (object->resource_version().empty()) return object;
  // Replaces the version within the text, where identify() finds it. All else stays byte for byte.
  const kube::ObjectText before = object->text();
  const auto found = kube::identify(before.view());
  HANGAR_ASSERT(found.has_value(), "an object has an identity");
  const std::string_view old = found->resource_version;
  const auto at = static_cast<std::size_t>(old.data() - before.view().data());
  std::string text(before.view().substr(0, at));
  text += std::to_string(version);
  text += before.view().substr(at + old.size());
  auto made = kube::Object::make(text);
  HANGAR_ASSERT(made.has_value(), "an object with another version is an object");
  return *std::move(made);
}

std::vector<Change> in_order(std::vector<Delta> differences, std::uint64_t from, std::uint64_t to) {
  Differences ordered;
  ordered.set_range(from, to);
  for (Delta& delta : differences)
    ordered.add(std::move(delta));
  std::vector<Change> out;
  out.reserve(differences.size());
  while (!ordered.empty())
    out.push_back(ordered.take());
  return out;
}

void Differences::add(Delta delta) {
  // Deletions sort first. They carry a version that the watcher already has: with a later version,
  // a watcher that is cut off after it would miss changes of lower versions.
  std::uint64_t position = 0;
  if (delta.type != Delta::Type::Deleted) {
    position = kube::parse_version(delta.object->resource_version())
                   .value_or(std::numeric_limits<std::uint64_t>::max());
  }
  bytes_ += bytes_of(delta);
  deltas_.emplace(position, std::move(delta));
}

bool Differences::are_few() const {
  return deltas_.size() <= limits::kGatewayHistoryMax && bytes_ <= limits::kGatewayHistoryBytesMax;
}

Change Differences::take() {
  const bool is_last = deltas_.size() == 1;
  Delta delta = std::move(deltas_.extract(deltas_.begin()).mapped());
  if (delta.type == Delta::Type::Deleted) {
    delta.object = with_version(delta.object, is_last ? to_ : from_);
  }
  return {delta.type, std::move(delta.object), std::move(delta.previous), to_};
}

void History::begin(std::uint64_t version) {
  changes_.clear();
  ages_.clear();
  gaps_.clear();
  bytes_ = 0;
  floor_ = version;
  version_ = version;
}

void History::append(Change change) {
  advance(change.version);
  change.version = version_;  // In order, whatever the server sends.
  push(std::move(change));
}

void History::append_list(const std::vector<Change>& changes, std::uint64_t list_version) {
  // With too many gaps, the oldest is merged into the floor, below which no watch resumes: the
  // floor rises to the end of that gap.
  if (list_version > version_ + 1) gaps_.emplace_back(version_, list_version);
  if (gaps_.size() > limits::kGatewayGapsMax) floor_ = std::max(floor_, gaps_.front().second);
  advance(list_version);
  for (const Change& change : changes)
    push(change);
  // All changes of a list have the list's version: they are dropped together or not at all.
  while (!changes_.empty() && changes_.front().version <= floor_)
    pop();
  while (!gaps_.empty() && gaps_.front().second <= floor_)
    gaps_.pop_front();
}

void History::skip_list(std::uint64_t list_version) {
  advance(list_version);
  floor_ = std::max(floor_, list_version);
  while (!changes_.empty() && changes_.front().version <= floor_)
    pop();
  while (!gaps_.empty() && gaps_.front().second <= floor_)
    gaps_.pop_front();
}

void History::reach_back(const std::vector<Change>& changes, std::uint64_t from, std::uint64_t to) {
  if (from >= floor_ || to < floor_ || to > version_) return;
  std::vector<Change> later;
  for (Change& change : changes_)
    if (change.version > to) later.push_back(std::move(change));
  const std::uint64_t version = version_;
  auto ages = std::move(ages_);
  // Those of lists that came while the two states were compared.
  auto gaps = std::move(gaps_);
  std::erase_if(gaps, [to](const auto& gap) { return gap.second <= to; });
  begin(from);
  ages_ = std::move(ages);
  append_list(changes, to);
  gaps_.splice(gaps_.end(), gaps);
  for (Change& change : later)
    push(std::move(change));
  advance(version);
}

void History::advance(std::uint64_t version) {
  version_ = std::max(version_, version);
}

void History::age(Instant now) {
  std::uint64_t old = 0;
  for (; !ages_.empty() && now - ages_.front().first >= limits::kGatewayHistoryAge;
       ages_.pop_front()) {
    old = ages_.front().second;
  }
  // The floor rises only to the last change that was dropped. Where nothing changes, a watch from
  // long ago has missed nothing and can resume.
  for (; !changes_.empty() && changes_.front().version <= old; pop())
    floor_ = std::max(floor_, changes_.front().version);
  while (!gaps_.empty() && gaps_.front().second <= floor_)
    gaps_.pop_front();
  if (ages_.empty() || ages_.back().second != version_) ages_.emplace_back(now, version_);
}

bool History::covers(std::uint64_t version) const {
  return version >= floor_ && std::ranges::none_of(gaps_, [version](const auto& gap) {
           return gap.first < version && version < gap.second;
         });
}

void History::push(Change change) {
  bytes_ += bytes_of(change);
  changes_.push_back(std::move(change));
  while (changes_.size() > limits::kGatewayHistoryMax || bytes_ > limits::kGatewayHistoryBytesMax) {
    floor_ = std::max(floor_, changes_.front().version);
    pop();
  }
}

void History::pop() {
  bytes_ -= bytes_of(changes_.front());
  changes_.pop_front();
}

}  // namespace hangar::gateway
