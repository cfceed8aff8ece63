#include "recorder/thin.h"

#include "recorder/limits.h"
#include "recorder/record.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace hangar::recorder {

namespace {

class Thinning {
 public:
  explicit Thinning(Holdings& owed) : owed_(owed) {}

  void add(const Place& place, const Record& record) {
    if (is_given_up(place, record)) return;
    const bool is_other_block =
        place.block.instant != block_.instant || place.block.wall != block_.wall;
    if (is_other_block || kept_.size_bytes() >= kBlockBytes) end_block();
    block_ = place.block;
    std::visit([this](const auto& one) { kept_.add(one, block_); }, record);
  }
  [[nodiscard]] Thinned end() && {
    end_block();
    return std::move(thinned_);
  }

 private:
  [[nodiscard]] bool is_given_up(const Place& place, const Record& record) {
    const std::optional<std::string_view> holder = holder_of(record);
    if (!holder) return false;
    const auto owed = owed_.find(*holder);
    if (owed == owed_.end()) return false;
    owed->second -= std::min(owed->second, place.record_bytes);
    if (owed->second == 0) owed_.erase(owed);
    const auto* const before = std::get_if<GivenUp>(&record);
    GivenUpRecords& given_up = thinned_.given_up[std::string(*holder)];
    given_up.count += before == nullptr ? 1 : before->count;
    given_up.records += before == nullptr ? 1 : 0;
    given_up.until = std::max(given_up.until, place.wall(time_of(record)));
    return true;
  }
  void end_block() {
    if (kept_.is_empty()) return;
    recorder::add(thinned_.held, kept_.held());
    thinned_.blocks += kept_.take();
  }

  Holdings& owed_;
  Thinned thinned_;
  Block kept_;
  Block::Moment block_;
};

}  // namespace

Result<Thinned> thin(std::string_view file, Holdings& owed) {
  Thinning thinning(owed);
  const ReadFile whole =
      HANGAR_TRY(read(file, [&thinning](const Place& place, const Record& record) {
        thinning.add(place, record);
        return true;
      }));
  Thinned thinned = std::move(thinning).end();
  thinned.header = whole.header;
  return thinned;
}

Result<Measured> measure(std::string_view file) {
  Measured measured;
  const ReadFile whole =
      HANGAR_TRY(read(file, [&measured](const Place& place, const Record& record) {
        if (const auto holder = holder_of(record)) add(measured.held, *holder, place.record_bytes);
        return true;
      }));
  measured.header = whole.header;
  return measured;
}

}  // namespace hangar::recorder
