#include "kube/internal/list_page.h"

#include "base/consumer.h"
#include "base/result.h"
#include "base/time.h"
#include "io/slice.h"
#include "kube/limits.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::kube::internal {

PageReader::PageReader(std::string_view body, GroupVersionKind gvk)
    : gvk_(std::move(gvk)), skim_(body), members_(skim_.object()) {}

Result<bool> PageReader::step(std::size_t bytes) {
  items_.clear();
  const std::size_t until = skim_.offset() + bytes;
  while (true) {
    if (is_in_items_ && HANGAR_TRY(read_items(until))) return false;
    if (read_member()) continue;
    HANGAR_TRY(skim_.finish());
    // Taken for an empty list, a status or a proxy's own document would end all objects.
    if (!has_items_) return fail(ErrorKind::InvalidInput, "it has no items, so it is not a list");
    return true;
  }
}

// True: there may be more items, but this is enough for now.
Result<bool> PageReader::read_items(std::size_t until) {
  while (skim_.next_element(elements_)) {
    const std::string_view item = skim_.value();
    if (skim_.is_failed()) break;
    items_.push_back(HANGAR_TRY(Object::make_item(item, gvk_)));
    ++end_.item_count;
    if (skim_.offset() >= until) return true;
  }
  is_in_items_ = false;
  return false;
}

// False: there is no more.
bool PageReader::read_member() {
  const std::optional<std::string_view> key = skim_.next_key(members_);
  if (!key) return false;
  if (*key == "metadata") {
    read_metadata();
  } else if (*key != "items") {
    skim_.value();
  } else {
    has_items_ = true;
    if (!skim_.skip_null()) {
      elements_ = skim_.array();
      is_in_items_ = true;
    }
  }
  return true;
}

void PageReader::read_metadata() {
  for (auto metadata = skim_.object(); const auto name = skim_.next_key(metadata);) {
    if (*name == "resourceVersion") {
      end_.resource_version = skim_.string();
    } else if (*name == "continue") {
      end_.continue_token = skim_.string();
    } else {
      skim_.value();
    }
  }
}

io::Task<Result<PageEnd>> PageReading::read(std::string body, GroupVersionKind gvk, Consumer whose,
                                            OnItem on_item, std::stop_token stop) {
  if (workers_ != nullptr && body.size() > limits::kListSliceBytes) {
    co_return co_await read_elsewhere(std::move(body), std::move(gvk), std::move(whose),
                                      std::move(on_item), std::move(stop));
  }
  PageReader reader(body, std::move(gvk));
  std::optional<io::Semaphore::Slot> slice;
  while (true) {
    const bool is_complete = HANGAR_CO_TRY(reader.step(limits::kListSliceBytes));
    for (ObjectPtr& item : reader.items())
      HANGAR_CO_TRY(on_item(std::move(item)));
    if (is_complete) co_return reader.end();
    slice.reset();
    slice.emplace(HANGAR_CO_TRY(co_await slices_.acquire(stop)));
    HANGAR_CO_TRY(co_await loop_.sleep(Duration::zero(), stop));
  }
}

io::Task<Result<PageEnd>> PageReading::read_elsewhere(std::string body, GroupVersionKind gvk,
                                                      Consumer whose, OnItem on_item,
                                                      std::stop_token stop) {
  struct Page {
    PageEnd end;
    std::vector<ObjectPtr> items;
  };
  const auto turn = HANGAR_CO_TRY(co_await long_pages_.take(whose.tenant, stop));
  Page page = HANGAR_CO_TRY(co_await workers_->run(
      std::move(whose), [body = std::move(body), gvk = std::move(gvk)]() -> Result<Page> {
        PageReader reader(body, gvk);
        if (!HANGAR_TRY(reader.step(body.size() + 1))) {
          return fail(ErrorKind::InvalidInput, "the list page is truncated");
        }
        return Page{.end = reader.end(), .items = std::move(reader.items())};
      }));
  io::Slice slice(loop_, limits::kListSliceBytes);
  for (ObjectPtr& item : page.items) {
    const std::size_t bytes = item->text_size();
    HANGAR_CO_TRY(on_item(std::move(item)));
    if (slice.is_used_up_by(bytes)) HANGAR_CO_TRY(co_await slice.rest(stop));
  }
  co_return std::move(page.end);
}

std::uint32_t next_page_size(std::uint32_t page_size, std::size_t item_count, std::uint64_t bytes) {
  if (page_size == 0 || bytes <= limits::kListPageBytesWanted) return page_size;
  const std::uint64_t fitting = item_count * limits::kListPageBytesWanted / bytes;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fitting, 1, page_size));
}

}  // namespace hangar::kube::internal
