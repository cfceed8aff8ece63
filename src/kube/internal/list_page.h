// Reads the pages of lists without building a document. Long pages are read by a worker or in
// slices, so that the loop has time for everything else. Tenants decide how large the objects are.
#pragma once

#include "base/consumer.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/turns.h"
#include "io/workers.h"
#include "json/skim.h"
#include "kube/object.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube::internal {

// What a page contains besides its items.
struct PageEnd {
  std::string resource_version;
  std::string continue_token;
  std::size_t item_count = 0;
};

// Reads one page step by step. No I/O.
class PageReader {
 public:
  // `body` outlives this object.
  PageReader(std::string_view body, GroupVersionKind gvk);

  // Reads at least `bytes` and on to the end of an item, or else the rest. True: the page has been
  // read. InvalidInput: it is not a page of a list; nothing more can be read.
  [[nodiscard]] Result<bool> step(std::size_t bytes);
  // The items of the last step, in their order.
  [[nodiscard]] std::vector<ObjectPtr>& items() { return items_; }
  [[nodiscard]] const PageEnd& end() const { return end_; }

 private:
  [[nodiscard]] Result<bool> read_items(std::size_t until);
  [[nodiscard]] bool read_member();
  void read_metadata();

  const GroupVersionKind gvk_;
  json::Skim skim_;
  json::Skim::Members members_;
  json::Skim::Members elements_;
  bool has_items_ = false;  // As each list of an API server, also an empty one.
  bool is_in_items_ = false;
  std::vector<ObjectPtr> items_;
  PageEnd end_;
};

// Reads all pages of one client. Between two rounds of the loop they share one slice, in turns.
// With workers, long pages are read there, one of each tenant at a time: so only one page of a
// tenant is in memory twice, and a tenant that waits for a worker delays no other tenant. Loop
// thread; outlives the tasks that read.
class PageReading {
 public:
  // `workers` outlives this object, or is null.
  explicit PageReading(io::Loop& loop, io::Workers* workers = nullptr)
      : loop_(loop), workers_(workers), slices_(loop, 1), long_pages_(loop) {}

  // Calls `on_item` with each item, in order; an error from it ends the reading. Workers read for
  // the consumer `whose`. A page of at most one slice is read at once. Cancelled.
  using OnItem = std::function<Result<>(ObjectPtr item)>;
  [[nodiscard]] io::Task<Result<PageEnd>> read(std::string body, GroupVersionKind gvk,
                                               Consumer whose, OnItem on_item,
                                               std::stop_token stop);

 private:
  [[nodiscard]] io::Task<Result<PageEnd>> read_elsewhere(std::string body, GroupVersionKind gvk,
                                                         Consumer whose, OnItem on_item,
                                                         std::stop_token stop);

  io::Loop& loop_;
  io::Workers* const workers_;
  io::Semaphore slices_;
  io::Turns<Tenant> long_pages_;
};

// The number of items to request after a page of `item_count` items and `bytes`.
[[nodiscard]] std::uint32_t next_page_size(std::uint32_t page_size, std::size_t item_count,
                                           std::uint64_t bytes);

}  // namespace hangar::kube::internal
