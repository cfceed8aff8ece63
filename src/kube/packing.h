// Objects of one kind look alike. A kind with many of them keeps them compressed, against a
// dictionary of what some of them say: that is less than half of the memory.
#pragma once

#include "kube/limits.h"
#include "kube/object.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::kube {

// What the objects of a kind have in common, for zstd. Immutable; any thread.
class PackDictionary {
 public:
  // `samples`: texts of such objects, one after another.
  explicit PackDictionary(std::string_view samples);
  PackDictionary(const PackDictionary&) = delete;
  PackDictionary& operator=(const PackDictionary&) = delete;
  ~PackDictionary();

  [[nodiscard]] std::string pack(std::string_view text) const;
  // The text of `size_bytes` that pack() made `packed` of.
  [[nodiscard]] std::string unpack(std::string_view packed, std::size_t size_bytes) const;

 private:
  struct Native;
  const std::unique_ptr<const Native> native_;
};

// Packs the objects of one kind once there are many: a dictionary takes some 200 KiB. One thread.
class Packer {
 public:
  // In bytes of text.
  struct Bounds {
    std::size_t kind_min = limits::kPackedKindBytesMin;
    std::size_t text_min = limits::kPackedTextBytesMin;
  };
  explicit Packer(Bounds bounds) : bounds_(bounds) {}

  // The object in less memory, or itself where that would save little. `is_new`: it does not
  // replace an earlier state of the same object, so that there is one more of them.
  [[nodiscard]] ObjectPtr pack(ObjectPtr object, bool is_new);

 private:
  void learn_from(const Object& object);

  const Bounds bounds_;
  std::size_t seen_bytes_ = 0;
  std::size_t sample_count_ = 0;
  std::string samples_;
  std::shared_ptr<const PackDictionary> dictionary_;  // Null until there are many objects.
};

}  // namespace hangar::kube
