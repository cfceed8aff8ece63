#include "output/log_writer.h"

#include "base/limits.h"
#include "base/log.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "output/log_files.h"
#include "wasm/test_guests.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

namespace hangar::output {
namespace {

io::Task<bool> flushed(LogWriter& writer) {
  co_await writer.flush();
  co_return true;
}

TEST(LogWriter, WritesInTheOrderOfTheCalls) {
  const wasm::TemporaryDirectory directory;
  io::Loop loop;
  const LogFiles logs(directory.path());
  LogWriter writer(loop, logs, Log());
  const LogFiles::Owner owner{.key = {"ns", "it"}, .uid = "1"};

  writer.append(owner, "of another\n");
  writer.remove(owner.key);
  writer.begin(owner);
  writer.append(owner, "first\n");
  writer.append(owner, "second\n");
  EXPECT_TRUE(io::run_to_end(loop, flushed(writer)));

  EXPECT_EQ(logs.read(owner.key).value_or(""), "first\nsecond\n");
}

// A FIFO without a reader: open() waits.
TEST(LogWriter, ADiskThatHangsHoldsUpNobodyAndCostsOutputBeyondABound) {
  const wasm::TemporaryDirectory directory;
  io::Loop loop;
  const LogFiles logs(directory.path());
  const LogFiles::Owner owner{.key = {"ns", "it"}, .uid = "1"};
  const LogFiles::Owner other{.key = {"neighbour", "it"}, .uid = "2"};
  ASSERT_TRUE(logs.append(owner, "x\n"));
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    file = entry.path();
  std::filesystem::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  std::atomic<std::uint64_t> read_bytes = 0;
  {
    auto writer = std::make_unique<LogWriter>(loop, logs, Log());

    const std::string block(limits::kMiB, 'x');
    for (int count = 0; count < 100; ++count)
      writer->append(owner, block);
    writer->append(other, "y\n");
    bool has_turned = false;
    loop.post([&] { has_turned = true; });
    loop.run_until([&] { return has_turned; });

    // From here on the FIFO accepts all bytes: the writer's destructor waits for the write
    // in progress.
    const int fifo = ::open(file.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    std::jthread reader([&](const std::stop_token& stop) {
      std::string piece(limits::kMiB, '\0');
      while (!stop.stop_requested()) {
        const ssize_t size = ::read(fifo, piece.data(), piece.size());
        if (size > 0) read_bytes += static_cast<std::uint64_t>(size);
      }
      ::close(fifo);
    });
    EXPECT_TRUE(io::run_to_end(loop, flushed(*writer)));
    while (read_bytes == 0)
      std::this_thread::yield();
    writer.reset();
  }
  EXPECT_LE(read_bytes, 3 * limits::kMiB);
  EXPECT_EQ(logs.read(other.key).value_or(""), "y\n") << "there is room for another namespace";
}

}  // namespace
}  // namespace hangar::output
