#include "gateway/view.h"

#include "gateway/history.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "kube/selector.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#include <sanitizer/allocator_interface.h>
#endif

namespace {

// Bytes that this thread has allocated.
thread_local std::size_t taken_bytes = 0;

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
// A sanitizer's operators cannot be replaced, but it has hooks for them.
const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void* /*memory*/, std::size_t size) { taken_bytes += size; },
    [](const volatile void* /*memory*/) {});
#endif

}  // namespace

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
// All other forms of new call this one; the library's delete frees what malloc gave.
void* operator new(std::size_t size) {
  taken_bytes += size;
  if (void* const memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
#endif

namespace hangar::gateway {
namespace {

// A ConfigMap of 300 KB in many small values, with this label.
kube::ObjectPtr large(const std::string& label) {
  std::string data;
  for (int index = 0; index < 12'000; ++index)
    data += fmt::format(R"({}"key-{}":"some-value-{}")", index == 0 ? "" : ",", index, index);
  return kube::Object::
      make(fmt::format(
               R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7","labels":{{"app":"{}","tier":"1"}}}},"data":{{{}}}}})",
               label, data))
          .value();
}

// Bytes that a look at one object may allocate: for its labels, and not for its data.
constexpr std::size_t kLookBytesMax = 4096;

TEST(View, LooksAtLabelsOnlyHoweverLargeTheObjectIs) {
  const View view({"ns", ""}, kube::LabelSelector::parse("app in (x,y),!none").value(), {});
  const kube::ObjectPtr in = large("x");
  const kube::ObjectPtr out = large("z");
  ASSERT_GT(in->text_size(), 300'000U);

  const std::size_t before = taken_bytes;
  EXPECT_TRUE(view.sees(*in));
  EXPECT_FALSE(view.sees(*out));
  EXPECT_LE(taken_bytes - before, kLookBytesMax);
}

TEST(View, LooksAtLabelsOnlyWhenAnObjectChanges) {
  const View view({"ns", ""}, kube::LabelSelector::parse("app=x").value(), {});
  const Change change{.type = kube::Delta::Type::Modified,
                      .object = large("x"),
                      .previous = large("z"),
                      .version = 7};

  const std::size_t before = taken_bytes;
  Sight sight(change);
  const auto line = view.see(sight);
  EXPECT_LE(taken_bytes - before, kLookBytesMax);
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->type, WatchLine::Type::Added);
}

}  // namespace
}  // namespace hangar::gateway
