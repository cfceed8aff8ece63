#include "seeing/top.h"

#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "recorder/record.h"
#include "recorder/story.h"
#include "seeing/find.h"
#include "seeing/internal/reading.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace hangar::seeing {

namespace {

using recorder::Story;

// The sums of one guest.
struct Gathered {
  TopRow row;
  std::set<std::pair<std::uint64_t, std::uint64_t>> instances;  // Pairs of host and instance.
};

// Stories come from the newest to the oldest.
void add(Gathered& gathered, const Story& story) {
  TopRow& row = gathered.row;
  if (row.turns == 0) {
    const bool is_gone = story.suspend || story.contract != recorder::Contract::Operator;
    row.memory_bytes = is_gone ? 0 : story.memory_bytes;
    row.disk_bytes = story.disk_bytes;
  }
  ++row.turns;
  row.cpu += story.cpu;
  if (story.outcome == recorder::Turn::Outcome::Failed) ++row.failures;
  row.requests += story.requests.size();
  for (const recorder::Request& request : story.requests)
    if (request.is_write()) row.written_bytes += request.bytes;
  // Other guests do not live between turns.
  if (story.contract != recorder::Contract::Operator) return;
  gathered.instances.emplace(story.host, story.instance);
  row.restarts = gathered.instances.size() - 1;
}

}  // namespace

Result<FoundTop> find_top(const RecordsPlace& place, const TopQuestion& question,
                          const ReadBounds& bounds) {
  FoundTop found{.at = io::Loop::wall_now(), .window = question.window};
  const WallTime since = found.at - question.window;
  internal::Reading reading(bounds);
  std::map<GuestKey, Gathered> guests;
  bool is_reached = false;
  const auto on_story = [&](const Story& story) {
    is_reached = reading.ended_before(story, since);
    if (is_reached || !reading.has_time()) return false;
    const bool is_meant = question.namespace_.empty() || story.namespace_ == question.namespace_;
    if (!is_meant) return true;
    const GuestKey key{
        .contract = story.contract, .namespace_ = story.namespace_, .name = story.name};
    Gathered& gathered = guests[key];
    gathered.row.key = key;
    add(gathered, story);
    return guests.size() <= bounds.entries_max;
  };
  found.read = HANGAR_TRY(place.file.empty() ? recorder::read_directory(place.directory, on_story)
                                             : recorder::read_file(place.file, on_story));
  reading.tell(found.read);
  if (!question.namespace_.empty()) internal::leave_only(found.read, question.namespace_);
  // Records that were given up before the window are not missing in it.
  std::erase_if(found.read.shortened,
                [since](const recorder::Shortened& one) { return one.until < since; });
  if (!is_reached && found.read.since) {
    found.window = std::clamp<Duration>(found.at - *found.read.since, std::chrono::seconds(1),
                                        question.window);
  }
  for (auto& [key, gathered] : guests)
    found.rows.push_back(std::move(gathered.row));
  return found;
}

void add_present(FoundTop& found, const std::vector<PresentGuest>& present) {
  std::map<GuestKey, TopRow> rows;
  for (TopRow& row : found.rows)
    rows.emplace(row.key, std::move(row));
  for (const PresentGuest& guest : present) {
    TopRow& row = rows[guest.key];
    row.key = guest.key;
    row.phase = guest.phase;
    row.memory_bytes = guest.memory_bytes;
    row.disk_bytes = guest.disk_bytes;
    row.restarts = guest.restarts;
  }
  found.rows.clear();
  for (auto& [key, row] : rows)
    found.rows.push_back(std::move(row));
}

}  // namespace hangar::seeing
