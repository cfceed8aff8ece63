// The address space for the memories of sleepable instances.
//
// wasmtime requests a memory when it makes an instance. It gets a slot of address space that was
// used before, if there is one, because reserving address space costs more than mapping into it.
// The code that makes the instance declares the memory's content through Next, on the same thread.
#pragma once

#include "base/result.h"

#include <wasmtime/config.h>
#include <wasmtime/error.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace hangar::wasm {

class BaseImage;

// Any thread. Outlives its engine.
class MemorySlots {
 public:
  MemorySlots();
  MemorySlots(const MemorySlots&) = delete;
  MemorySlots& operator=(const MemorySlots&) = delete;
  ~MemorySlots();

  // The callbacks for the engine's configuration.
  [[nodiscard]] wasmtime_memory_creator_t creator();

  // Describes the next memory that this thread makes, while the object exists: `memory_bytes` long,
  // with `image` at its beginning.
  class Next {
   public:
    Next(const BaseImage& image, std::uint64_t memory_bytes);
    Next(const Next&) = delete;
    Next& operator=(const Next&) = delete;
    ~Next();
    // Why the kernel refused to map it; wasmtime's own error says less.
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

   private:
    friend class MemorySlots;
    const BaseImage& image_;
    const std::uint64_t memory_bytes_;
    std::optional<Error> error_;
  };

 private:
  struct Slot;
  static wasmtime_error_t* new_memory(void* self, const wasm_memorytype_t* type,
                                      std::size_t minimum, std::size_t maximum,
                                      std::size_t reserved_bytes, std::size_t guard_bytes,
                                      wasmtime_linear_memory_t* memory);
  static std::uint8_t* get_memory(void* slot, std::size_t* size, std::size_t* capacity);
  static wasmtime_error_t* grow_memory(void* slot, std::size_t size);
  static void end_memory(void* slot);

  [[nodiscard]] Result<std::unique_ptr<Slot>> take(std::size_t reserved_bytes,
                                                   std::size_t guard_bytes);
  void give(std::unique_ptr<Slot> slot);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Slot>> free_;
};

}  // namespace hangar::wasm
