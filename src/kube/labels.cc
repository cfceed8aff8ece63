#include "kube/labels.h"

#include "json/skim.h"
#include "kube/object.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <tuple>

namespace hangar::kube {

void Labels::read(const Object& object) {
  labels_.clear();
  unescaped_.clear();
  if (object.labels().empty()) return;
  const auto plain = [this](std::string_view raw) -> std::string_view {
    if (!raw.contains('\\')) return raw;
    return unescaped_.emplace_front(json::unescape(raw));
  };
  // The text was checked when the object was made.
  json::Skim skim(object.labels());
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    const std::string_view name = plain(*key);
    if (skim.peek() == '"') {
      labels_.push_back({name, plain(skim.raw_string()), labels_.size()});
    } else {
      skim.value();
      labels_.push_back({name, std::string_view(), labels_.size()});  // No value.
    }
  }
  // The API server writes them sorted.
  if (std::ranges::is_sorted(labels_, {}, &Label::key)) return;
  std::ranges::sort(labels_, [](const Label& one, const Label& other) {
    return std::tie(one.key, one.position) < std::tie(other.key, other.position);
  });
}

std::optional<std::string_view> Labels::find(std::string_view key) const {
  // Of several labels with one key the last one counts, as in a document.
  const auto after = std::ranges::upper_bound(labels_, key, {}, &Label::key);
  if (after == labels_.begin()) return std::nullopt;
  const Label& found = *std::prev(after);
  if (found.key != key || found.value.data() == nullptr) return std::nullopt;
  return found.value;
}

}  // namespace hangar::kube
