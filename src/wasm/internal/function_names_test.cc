#include "wasm/internal/function_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hangar::wasm::internal {
namespace {

TEST(FunctionNames, AreThoseOfTheirLanguage) {
  struct Case {
    std::string name;
    std::string readable;
  };
  const std::vector<Case> cases = {
      // Rust.
      {"_ZN4core9panicking5panic17h0123456789abcdefE", "core::panicking::panic"},
      {"_ZN49_$LT$a..inner..T$u20$as$u20$a..inner..Do$GT$$u3f$3act17h0123456789abcdefE",
       "<a::inner::T as a::inner::Do>?::act"},
      {"_ZN3a$u17h0123456789abcdefE", "a$u"},
      {"_ZN5$u07$17h0123456789abcdefE", "$u07$"},
      {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
      {"_RNCNvC7mycrate3run0B3_", "mycrate::run::{closure}"},
      {"_RNvMs_NtCs1_1a5innerNtB4_1T4boom", "_RNvMs_NtCs1_1a5innerNtB4_1T4boom"},
      // C++.
      {"_ZN6flight3runEv", "flight::run"},
      {"_ZNK6flight4Kind4nameEv", "flight::Kind::name"},
      {"_Z3runi", "run"},
      {"_ZN1aIS_S_ES_", "a"},
      {"_ZN2..2$aEv", "..::$a"},
      // Go.
      {"main.main", "main.main"},
      {"main.__Reconciler_.Reconcile", "main.(*Reconciler).Reconcile"},
      {"example.com_memo_internal_controller.__MemoReconciler_.Reconcile.func1",
       "example.com_memo_internal_controller.(*MemoReconciler).Reconcile.func1"},
      {"main.__Cache_go.shape.int__.Get", "main.(*Cache[...]).Get"},
      {"main.__Cache_go.shape.int_go.shape.struct___.Get.func2", "main.(*Cache[...]).Get.func2"},
      {"slices.Sort_go.shape.___uint8_go.shape.uint8_", "slices.Sort[...]"},
      {"main.Map_go.shape.int_.func1", "main.Map[...].func1"},
      // Others, and broken ones, stay as they are.
      {"_start", "_start"},
      {"", ""},
      {"_Z", "_Z"},
      {"_ZN", "_ZN"},
      {"_ZN99999999999foo", "_ZN99999999999foo"},
      {"_ZN0E", "_ZN0E"},
      {"_R", "_R"},
      {"_RN", "_RN"},
      {"_RNv", "_RNv"},
      {"_RC", "_RC"},
      {"_RCs3foo", "_RCs3foo"},
      {"_RNvC3foo", "_RNvC3foo"},
      {"main.__", "main.__"},
      {".__a_.b", ".__a_.b"},
      {"main.___.b", "main.___.b"},
      {"main._go.shape.", "main._go.shape."},
      {"a.__b_go.shape._.", "a.(*b_go.shape.)."},
  };
  for (const Case& each : cases)
    EXPECT_EQ(readable_name(each.name), each.readable) << each.name;
}

TEST(FunctionNames, OfAnyLengthTakeLittleTime) {
  for (const std::string part : {"_ZN", "$", "_ZN1$", "_RN", "N", ".__", "_.", "_go.shape."}) {
    std::string name = "_ZN1a";
    while (name.size() < 4'000'000)
      name += part;
    EXPECT_LE(readable_name(name).size(), 1100U);
    EXPECT_LE(readable_name(name.substr(5)).size(), 1100U);
  }
}

}  // namespace
}  // namespace hangar::wasm::internal
