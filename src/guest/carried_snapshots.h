// The snapshot and the layer of one guest, which this process sends to the host or receives from
// it.
#pragma once

#include "base/result.h"
#include "budget/consumer.h"
#include "io/descriptor.h"
#include "wasm/snapshot/page_layer.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/snapshots.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::guest {

// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): it is final.
class CarriedSnapshots;

// A layer that the host keeps. What the guest has written is here until the host has it.
class CarriedLayer final : public wasm::PageLayer {
 public:
  // One that the host has. `file`: its pages, which nobody can write through it.
  CarriedLayer(std::span<const wasm::PageRange> pieces, io::Descriptor file)
      : PageLayer(pieces), file_(std::move(file)) {}
  // A new one. `home` outlives it.
  CarriedLayer(std::span<const wasm::PageRange> pieces, const CarriedSnapshots& home)
      : PageLayer(pieces), home_(&home) {}

  // The host has no file for it yet.
  [[nodiscard]] bool is_new() const { return !file_.is_open(); }
  // The pages of the layer that the host has to take over, as the guest left them; ascending.
  [[nodiscard]] const wasm::PageRanges& written() const { return written_; }
  [[nodiscard]] std::string_view written_bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t disk_bytes() const override { return 0; }

 private:
  Result<> write_pages(std::uint32_t place, std::span<const std::byte> pages) override;
  Result<> map_pages(std::uint32_t place, std::span<std::byte> part) override;

  io::Descriptor file_;
  const CarriedSnapshots* home_ = nullptr;  // Null when it is not new.
  wasm::PageRanges written_;
  std::string bytes_;
};

// In memory, because this process has no file that it could write to. Any thread.
class CarriedSnapshots final : public wasm::Snapshots {
 public:
  [[nodiscard]] Result<Extent> write(std::span<const std::byte> bytes,
                                     const budget::Tenant& tenant) override;
  [[nodiscard]] Result<> read(Extent extent, std::span<std::byte> into) const override;
  void free(Extent extent) override;

  // LimitExceeded beyond the host's bound for a new layer, which is zero at first.
  [[nodiscard]] Result<std::unique_ptr<wasm::PageLayer>> make_layer(
      const wasm::PageRanges& pieces, const budget::Tenant& tenant) override;
  void set_layer_pages_max(std::uint32_t pages) { layer_pages_max_ = pages; }
  [[nodiscard]] bool has_room_for(const wasm::PageLayer& layer) const {
    return wasm::page_count(layer.pages()) <= layer_pages_max_;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::vector<std::byte>> by_number_;  // The number is the extent's offset.
  std::atomic<std::uint32_t> layer_pages_max_ = 0;
};

}  // namespace hangar::guest
