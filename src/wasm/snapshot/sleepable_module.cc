#include "wasm/snapshot/sleepable_module.h"

#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
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

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::wasm {

namespace {

// What a worker makes of a module's bytes.
struct Prepared {
  RewrittenModule module;
  Digest digest;  // Of what is compiled.
  std::shared_ptr<const std::string> bytes;
  std::shared_ptr<const BaseImage> image;
};

Result<Prepared> prepare(const Digest& digest, const std::shared_ptr<const std::string>& wasm_bytes,
                         const std::filesystem::path& image_directory) {
  const auto bytes = std::as_bytes(std::span(*wasm_bytes));
  if (Digest::of(bytes) != digest) {
    return fail(ErrorKind::InvalidInput, "the module is not the one its digest names");
  }
  Prepared prepared{.module = HANGAR_TRY(rewrite(bytes))};
  RewrittenModule& module = prepared.module;
  if (!module.obstacle && ::sysconf(_SC_PAGESIZE) != static_cast<long>(kPageBytes)) {
    module.obstacle = "would sleep, but this machine's pages are not of 4 KiB";
  }
  if (module.obstacle) {
    prepared.digest = digest;
    prepared.bytes = wasm_bytes;
    return prepared;
  }
  prepared.image = HANGAR_TRY(BaseImage::of_data(image_directory, module.data));
  module.data.clear();  // They point into `wasm_bytes`.
  prepared.bytes = std::make_shared<const std::string>(std::move(module.bytes));
  prepared.digest = Digest::of(*prepared.bytes);
  return prepared;
}

}  // namespace

io::Task<Result<std::shared_ptr<const SleepableModule>>> SleepableModule::load(
    CodeCache& cache, Digest digest, std::shared_ptr<const std::string> wasm_bytes,
    std::filesystem::path image_directory, std::stop_token stop) {
  if (wasm_bytes == nullptr) {
    co_return fail(ErrorKind::NotFound, "a module that is to sleep is made from its bytes");
  }
  Prepared prepared =
      HANGAR_CO_TRY(co_await cache.engine().workers().run([digest, wasm_bytes, image_directory] {
        return prepare(digest, wasm_bytes, image_directory);
      }));
  wasm_bytes.reset();

  auto native = std::make_unique<Native>(cache.engine());
  native->digest = digest;
  // Not from the pool in any case: these instances stay.
  native->set_code(HANGAR_CO_TRY(co_await cache.load(
      prepared.digest, std::move(prepared.bytes), std::move(stop),
      prepared.module.obstacle ? Module::Allocation::OnDemand : Module::Allocation::Sleepable)));
  native->obstacle = std::move(prepared.module.obstacle);
  native->global_count = prepared.module.global_count;
  native->has_start = prepared.module.has_start;
  native->image_directory = std::move(image_directory);
  native->initial = std::move(prepared.image);
  co_return std::shared_ptr<const SleepableModule>(new SleepableModule(std::move(native)));
}

SleepableModule::SleepableModule(std::unique_ptr<Native> native) : native_(std::move(native)) {}

SleepableModule::~SleepableModule() = default;

const Digest& SleepableModule::digest() const {
  return native_->digest;
}

io::Task<Result<std::shared_ptr<const Module>>> SleepableModule::code() const {
  return native_->acquire_code();
}

bool SleepableModule::is_loaded() const {
  return native_->has_code();
}

const std::optional<std::string>& SleepableModule::obstacle() const {
  return native_->obstacle;
}

std::uint64_t SleepableModule::image_bytes() const {
  const auto settled = native_->settled();
  return (native_->initial != nullptr ? native_->initial->disk_bytes() : 0) +
         (settled != nullptr ? settled->disk_bytes() : 0);
}

SleepableModule::Native& SleepableModule::native() const {
  return *native_;
}

void SleepableModule::Native::set_code(std::shared_ptr<const Module> code) {
  code_file_ = code->file();
  code_digest_ = code->digest();
  code_ = std::move(code);
  code_used_ = io::Loop::now();
  on_code_released();
}

io::Task<Result<std::shared_ptr<const Module>>> SleepableModule::Native::acquire_code() {
  code_used_ = io::Loop::now();
  if (code_ != nullptr) co_return code_;
  const io::Semaphore::Slot slot = co_await loading_.acquire();
  if (code_ == nullptr) {
    set_code(HANGAR_CO_TRY(
        co_await engine.workers().run([&engine = engine, digest = code_digest_, file = code_file_] {
          return internal::load_again(engine, digest, file);
        })));
  }
  co_return code_;
}

// One timer for all who let go of it within some seconds.
void SleepableModule::Native::on_code_released() {
  if (code_file_ == nullptr || std::exchange(is_code_timed_, true)) return;
  const Duration kept = engine.native().sleeping_code_kept;
  code_timer_ = engine.loop().after(kept, [this, kept] {
    is_code_timed_ = false;
    if (code_.use_count() != 1) return;
    if (io::Loop::now() - code_used_ < kept) return on_code_released();
    code_.reset();
  });
}

std::shared_ptr<const BaseImage> SleepableModule::Native::settled() const {
  const std::scoped_lock lock(mutex_);
  return settled_;
}

void SleepableModule::Native::settle(std::span<const std::byte> memory, const PageRanges& pages) {
  {
    const std::scoped_lock lock(mutex_);
    if (settled_ != nullptr || is_settling_) return;
    is_settling_ = true;
  }
  Result<std::shared_ptr<const BaseImage>> image =
      BaseImage::of_memory(image_directory, memory, pages);
  const std::scoped_lock lock(mutex_);
  is_settling_ = false;
  if (image) settled_ = *std::move(image);
}

}  // namespace hangar::wasm
