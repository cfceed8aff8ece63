#include "kube/packing.h"

#include "base/assert.h"
#include "kube/limits.h"
#include "kube/object.h"

#include <zstd.h>

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube {

namespace {

// Higher levels take more time than they save memory: the dictionary makes most of the difference.
constexpr int kLevel = 1;

template <class T, auto kFree>
struct Freed {
  void operator()(T* native) const { kFree(native); }
};
template <class T, auto kFree>
using Owned = std::unique_ptr<T, Freed<T, kFree>>;

template <class T>
T* checked(T* native) {
  if (native == nullptr) throw std::bad_alloc();
  return native;
}

// Working memory of zstd, made once by each thread that needs it.
ZSTD_CCtx* compressor() {
  static thread_local const Owned<ZSTD_CCtx, ZSTD_freeCCtx> context(checked(ZSTD_createCCtx()));
  return context.get();
}
ZSTD_DCtx* decompressor() {
  static thread_local const Owned<ZSTD_DCtx, ZSTD_freeDCtx> context(checked(ZSTD_createDCtx()));
  return context.get();
}

}  // namespace

struct PackDictionary::Native {
  Owned<ZSTD_CDict, ZSTD_freeCDict> compress;
  Owned<ZSTD_DDict, ZSTD_freeDDict> decompress;
};

// Texts begin with '{', so that zstd takes them for content, not for a dictionary in its format.
PackDictionary::PackDictionary(std::string_view samples)
    : native_(std::make_unique<Native>(Owned<ZSTD_CDict, ZSTD_freeCDict>(checked(ZSTD_createCDict(
                                           samples.data(), samples.size(), kLevel))),
                                       Owned<ZSTD_DDict, ZSTD_freeDDict>(checked(
                                           ZSTD_createDDict(samples.data(), samples.size()))))) {}

PackDictionary::~PackDictionary() = default;

std::string PackDictionary::pack(std::string_view text) const {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size =
      ZSTD_compress_usingCDict(compressor(), packed.data(), packed.size(), text.data(), text.size(),
                               native_->compress.get());
  HANGAR_ASSERT(ZSTD_isError(size) == 0, "there is room for everything that zstd can make");
  packed.resize(size);
  return packed;
}

std::string PackDictionary::unpack(std::string_view packed, std::size_t size_bytes) const {
  std::string text(size_bytes, '\0');
  const std::size_t size =
      ZSTD_decompress_usingDDict(decompressor(), text.data(), text.size(), packed.data(),
                                 packed.size(), native_->decompress.get());
  HANGAR_ASSERT(size == size_bytes, "it was made by pack(), and nobody has written to it since");
  return text;
}

ObjectPtr Packer::pack(ObjectPtr object, bool is_new) {
  const std::size_t size = object->text_size();
  if (object->is_packed() || size < bounds_.text_min || size > limits::kPackedTextBytesMax) {
    return object;
  }
  if (dictionary_ == nullptr && is_new) learn_from(*object);
  if (dictionary_ == nullptr) return object;
  ObjectPtr packed = object->packed(dictionary_);
  return packed != nullptr ? packed : object;
}

// The samples are taken at equal distances: neighbours in a list have more in common than the rest.
void Packer::learn_from(const Object& object) {
  seen_bytes_ += object.text_size();
  if (seen_bytes_ >= sample_count_ * bounds_.kind_min / limits::kPackSamples) {
    const ObjectText text = object.text();
    samples_ += text.view().substr(0, limits::kPackSampleBytesMax);
    ++sample_count_;
  }
  if (seen_bytes_ < bounds_.kind_min) return;
  dictionary_ = std::make_shared<const PackDictionary>(samples_);
  samples_ = {};
}

}  // namespace hangar::kube
