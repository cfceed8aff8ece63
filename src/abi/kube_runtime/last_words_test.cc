#include "abi/kube_runtime/last_words.h"

#include "abi/kube_runtime/output_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::kube_runtime {
namespace {

std::vector<OutputLine> printed(std::string_view text, OutputStream stream = OutputStream::Stderr) {
  OutputLines lines(1'000'000);
  lines.print(stream, text);
  return lines.take().lines;
}

TEST(LastWords, HaveReasonAndPlaceOfAPanicInGo) {
  EXPECT_EQ(last_words(printed("begins\n"
                               "panic: on purpose\n\n"
                               "goroutine 7 [running]:\n"
                               "main.(*Job).Run(0x1)\n"
                               "\texample.com/cmd/main.go:94 +0x2\n"
                               "created by main.run in goroutine 1\n"
                               "\texample.com/cmd/main.go:12 +0x2\n")),
            "panic: on purpose (main.(*Job).Run at example.com/cmd/main.go:94)");
  EXPECT_EQ(last_words(printed("fatal error: out of memory\n\n"
                               "goroutine 1 gp=0x1 m=0 mp=0x2 [running]:\n"
                               "runtime.throw({0x1, 0x2})\n"
                               "\truntime/panic.go:1101 +0x3\n"
                               "main.allocate(...)\n"
                               "\tmain.go:79\n")),
            "fatal error: out of memory (main.allocate at main.go:79)");
}

TEST(LastWords, NameTheFunctionThatPanickedFirst) {
  EXPECT_EQ(last_words(printed("panic: nil map [recovered, repanicked]\n\n"
                               "goroutine 7 [running]:\n"
                               "controller.(*Controller).Reconcile.func1()\n"
                               "\tcontroller.go:110 +0x2\n"
                               "panic({0x1, 0x2})\n"
                               "\truntime/panic.go:783 +0x3\n"
                               "runtime.mapassign()\n"
                               "\truntime/map.go:1 +0x3\n"
                               "main.(*Reconciler).Reconcile(0x1)\n"
                               "\tmain.go:30 +0x4\n"
                               "controller.(*Controller).Reconcile(0x1)\n"
                               "\tcontroller.go:119 +0x4\n")),
            "panic: nil map [recovered, repanicked] (main.(*Reconciler).Reconcile at main.go:30)");
}

TEST(LastWords, HavePlaceAndReasonOfAPanicInRust) {
  EXPECT_EQ(last_words(printed("\nthread 'main' (1) panicked at src/main.rs:5:9:\n"
                               "index out of bounds\nnote: run with `RUST_BACKTRACE=1`\n")),
            "panicked at src/main.rs:5:9: index out of bounds");
  EXPECT_EQ(last_words(printed("thread 'main' panicked at 'old', src/main.rs:5:9\nnote\n")),
            "panicked at 'old', src/main.rs:5:9");
}

TEST(LastWords, AreAbsentWithoutAPanic) {
  EXPECT_EQ(last_words({}), "");
  EXPECT_EQ(last_words(printed("no panic: here\npanicked at noon\n")), "");
  EXPECT_EQ(last_words(printed("panic: on stdout\n", OutputStream::Stdout)), "");
}

TEST(LastWords, AreOneBoundedLineOfPrintableText) {
  EXPECT_EQ(last_words(printed("panic: \x1b[2J\xe2\x80\xae")), R"(panic: \x1b[2J\xe2\x80\xae)");
  EXPECT_EQ(last_words(printed("panic: a\ngoroutine 1\nf\n\tx:1\n(\n\tx:1\nf()\nx:1\n")),
            "panic: a");
  EXPECT_EQ(last_words(printed("thread 'a' panicked at :")), "panicked at :");
  const std::string much(10'000, '\x01');
  for (const std::string& text :
       {"panic: " + much, "panic: a\ngoroutine 1:\n" + much + "(\n\t" + much + "\n",
        "thread '' panicked at " + much + ":\n" + much}) {
    EXPECT_LE(last_words(printed(text)).size(), 800U);
  }
}

}  // namespace
}  // namespace hangar::abi::kube_runtime
