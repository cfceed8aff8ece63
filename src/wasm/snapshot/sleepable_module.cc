#include "wasm/snapshot/sleepable_module.h"

#include "base/digest.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/slots.h"
#include "base/time.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/turns.h"
#include "io/workers.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/internal/code_files.h"
#include "wasm/internal/engine_native.h"
#include "wasm/module.h"
#include "wasm/snapshot/base_image.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/rewrite.h"
#include "wasm/snapshot/sleepable_native.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::wasm {

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What a worker prepares from a module's bytes.
struct Prepared {
  RewrittenModule module;
  Digest digest;  // Of the rewritten module; of the original one if there is an obstacle.
  std::shared_ptr<const BaseImage> image;
};

// Only the digest of the rewritten module is needed, unless it has to be compiled: a large module
// would be in memory twice.
Result<Prepared> prepare(const Digest& digest, const std::string& wasm_bytes,
                         const std::filesystem::path& image_directory) {
  if (Digest::of(wasm_bytes) != digest) {
    return fail(ErrorKind::InvalidInput, "the module is not the one its digest names");
  }
  Sha256 sum;
  Prepared prepared{
      .module = HANGAR_TRY(rewrite(bytes_of(wasm_bytes), [&sum](std::span<const std::byte> piece) {
        sum.add(text_of(piece));
      }))};
  RewrittenModule& module = prepared.module;
  if (!module.obstacle && ::sysconf(_SC_PAGESIZE) != static_cast<long>(kPageBytes)) {
    module.obstacle = "would sleep, but this machine's pages are not of 4 KiB";
  }
  if (module.obstacle) {
    prepared.digest = digest;
    return prepared;
  }
  const Sha256Bytes rewritten = sum.finish();
  prepared.digest = Digest::of_bytes(text_of(std::as_bytes(std::span(rewritten))));
  prepared.image = HANGAR_TRY(BaseImage::of_data(image_directory, module.data));
  module.data = {};  // The data are views into `wasm_bytes`.
  return prepared;
}

Result<std::shared_ptr<const std::string>> rewritten_bytes(const std::string& wasm_bytes) {
  auto bytes = std::make_shared<std::string>();
  // Room for the additional exports, so that the module is not copied once more.
  bytes->reserve(wasm_bytes.size() + 4 * limits::kKiB);
  std::ignore =
      HANGAR_TRY(rewrite(bytes_of(wasm_bytes), [&bytes](std::span<const std::byte> piece) {
        bytes->append(text_of(piece));
      }));
  return std::shared_ptr<const std::string>(std::move(bytes));
}

// What CodeCache::load() returns. Rewrites the module once more if it has to be compiled.
io::Task<Result<std::shared_ptr<const Module>>> load_rewritten(
    CodeCache& cache, Digest digest, std::shared_ptr<const std::string> wasm_bytes,
    std::stop_token stop, budget::Beneficiaries beneficiaries) {
  constexpr auto kAllocation = Module::Allocation::Sleepable;
  Result<std::shared_ptr<const Module>> cached =
      co_await cache.load(digest, nullptr, stop, kAllocation, beneficiaries);
  if (cached || cached.error().kind() != ErrorKind::NotFound) co_return cached;
  std::shared_ptr<const std::string> bytes =
      HANGAR_CO_TRY(co_await cache.engine().workers().run_for_any(
          beneficiaries.all(), [wasm_bytes] { return rewritten_bytes(*wasm_bytes); }));
  wasm_bytes.reset();
  co_return co_await cache.load(digest, std::move(bytes), std::move(stop), kAllocation,
                                std::move(beneficiaries));
}

// Charges one of the beneficiaries with an image while the result exists. The error of the last one
// if none of them may have so much.
io::Task<Result<std::shared_ptr<const void>>> charge_image(CodeCache& cache, Digest digest,
                                                           std::uint64_t image_bytes,
                                                           budget::Beneficiaries beneficiaries) {
  Result<std::shared_ptr<const void>> charged;
  // A copy, because others may join while a worker makes the charge.
  const std::vector<budget::Consumer> consumers = beneficiaries.all();
  for (const budget::Consumer& consumer : consumers) {
    charged = co_await cache.charge(digest, image_bytes, consumer);
    if (charged) break;
  }
  co_return charged;
}

}  // namespace

io::Task<Result<std::shared_ptr<const SleepableModule>>> SleepableModule::load(
    CodeCache& cache, Digest digest, std::shared_ptr<const std::string> wasm_bytes,
    std::filesystem::path image_directory, std::stop_token stop,
    budget::Beneficiaries beneficiaries) {
  if (wasm_bytes == nullptr) {
    co_return fail(ErrorKind::NotFound, "a module that is to sleep is made from its bytes");
  }
  Prepared prepared = HANGAR_CO_TRY(co_await cache.engine().workers().run_for_any(
      beneficiaries.all(), [digest, wasm_bytes, image_directory] {
        return prepare(digest, *wasm_bytes, image_directory);
      }));

  auto native = std::make_unique<Native>(cache.engine(), std::move(image_directory));
  native->digest = digest;
  native->code_digest = prepared.digest;
  // The module may wait for the compiler for minutes, and its image takes up disk space meanwhile.
  std::shared_ptr<const void> charged;
  if (prepared.image != nullptr) {
    charged = HANGAR_CO_TRY(
        co_await charge_image(cache, prepared.digest, prepared.image->disk_bytes(), beneficiaries));
  }
  // Never from the pool, because these instances live long.
  std::shared_ptr<const Module> code;
  if (prepared.module.obstacle) {
    code =
        HANGAR_CO_TRY(co_await cache.load(digest, std::move(wasm_bytes), std::move(stop),
                                          Module::Allocation::OnDemand, std::move(beneficiaries)));
  } else {
    code = HANGAR_CO_TRY(co_await load_rewritten(cache, prepared.digest, std::move(wasm_bytes),
                                                 std::move(stop), std::move(beneficiaries)));
  }
  native->memory_bytes_min = code->memory_bytes_min();
  native->set_code(std::move(code));
  if (prepared.module.obstacle) {
    native->obstacle = std::make_unique<const std::string>(*std::move(prepared.module.obstacle));
  }
  native->global_count = static_cast<std::uint32_t>(prepared.module.global_count);
  native->has_start = prepared.module.has_start;
  native->initial = std::move(prepared.image);
  co_return std::allocate_shared<const SleepableModule>(slots::Allocator<SleepableModule>(),
                                                        std::move(native));
}

SleepableModule::SleepableModule(std::unique_ptr<Native> native) : native_(std::move(native)) {}

SleepableModule::~SleepableModule() = default;

const Digest& SleepableModule::digest() const {
  return native_->digest;
}

const Digest& SleepableModule::code_digest() const {
  return native_->code_digest;
}

io::Task<Result<std::shared_ptr<const Module>>> SleepableModule::code(
    budget::Consumer whose) const {
  return native_->acquire_code(std::move(whose));
}

bool SleepableModule::is_loaded() const {
  return native_->has_code();
}

const std::string* SleepableModule::obstacle() const {
  return native_->obstacle.get();
}

std::uint64_t SleepableModule::memory_bytes_min() const {
  return native_->memory_bytes_min;
}

std::uint64_t SleepableModule::image_number() const {
  return native_->initial == nullptr ? 0 : native_->initial->number();
}

std::uint64_t SleepableModule::image_bytes() const {
  const auto settled = native_->settled();
  return (native_->initial != nullptr ? native_->initial->disk_bytes() : 0) +
         (settled != nullptr ? settled->disk_bytes() : 0);
}

std::move_only_function<std::size_t()> SleepableModule::page_cache_drop() const {
  return [images = std::array{native_->initial, native_->settled()},
          code = native_->unused_code_file()] {
    std::size_t files = 0;
    for (const auto& image : images) {
      if (image == nullptr) continue;
      image->drop_page_cache();
      ++files;
    }
    if (code == nullptr) return files;
    ::posix_fadvise(code->descriptor(), 0, 0, POSIX_FADV_DONTNEED);
    return files + 1;
  };
}

SleepableModule::Native& SleepableModule::native() const {
  return *native_;
}

void SleepableModule::Native::set_code(std::shared_ptr<const Module> code) {
  // Code of a module with an obstacle stays loaded, because its instances stay resident.
  if (code->allocation() == Module::Allocation::Sleepable) code_file_ = code->file();
  code_ = std::make_unique<Code>(Code{.module = std::move(code), .used = io::Loop::now()});
  unload_when_unused();
}

io::Task<Result<std::shared_ptr<const Module>>> SleepableModule::Native::acquire_code(
    budget::Consumer whose) {
  if (code_ == nullptr) {
    const io::Turns<const Native*>::Turn turn = co_await engine.native().code_loads.take(this);
    if (code_ == nullptr) {
      set_code(HANGAR_CO_TRY(
          co_await engine.workers().run(std::move(whose), [&engine = engine, file = code_file_] {
            return internal::load_file(engine, file, Module::Allocation::Sleepable);
          })));
    }
  }
  code_->used = io::Loop::now();
  co_return code_->module;
}

std::shared_ptr<const internal::CodeFile> SleepableModule::Native::unused_code_file() const {
  return code_ == nullptr ? code_file_ : nullptr;
}

void SleepableModule::Native::on_code_released() {
  --code_->holders;
  code_->used = io::Loop::now();
  unload_when_unused();
}

// One timer serves all instances that release the code within some seconds.
void SleepableModule::Native::unload_when_unused() {
  if (code_file_ == nullptr || std::exchange(code_->is_timed, true)) return;
  const Duration kept = engine.native().sleeping_code_kept;
  code_->timer = engine.loop().after(kept, [this, kept] {
    code_->is_timed = false;
    if (code_->holders > 0) return;  // The last holder comes back here.
    // Others may hold it for a moment.
    if (code_->module.use_count() != 1 || io::Loop::now() - code_->used < kept) {
      return unload_when_unused();
    }
    code_.reset();
    engine.native().code.forget_gone();
  });
}

std::shared_ptr<const BaseImage> SleepableModule::Native::settled() const {
  return settling_ == Settling::Done ? settled_ : nullptr;
}

// Several workers may call this at once: the first one makes the image, the others go on without
// it. settled_ is written before settling_ becomes Done, and settled() reads settling_ first, so
// settled_ needs no lock.
void SleepableModule::Native::settle(std::span<const std::byte> memory, const PageRanges& pages) {
  Settling expected = Settling::NotYet;
  if (!settling_.compare_exchange_strong(expected, Settling::UnderWay)) return;
  Result<std::shared_ptr<const BaseImage>> image =
      BaseImage::of_memory(image_directory, memory, pages);
  if (image) settled_ = *std::move(image);
  settling_ = settled_ != nullptr ? Settling::Done : Settling::NotYet;
}

}  // namespace hangar::wasm
