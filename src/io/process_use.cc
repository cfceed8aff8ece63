#include "io/process_use.h"

#include "base/time.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace hangar::io {

namespace {

// A host has some dozens of guest processes and two compilers.
constexpr std::size_t kProcessesMax = 1000;

Duration duration_of(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

Duration cpu_of(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return duration_of(usage.ru_utime) + duration_of(usage.ru_stime);
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The kernel lists children by the thread that forked them.
std::vector<std::int64_t> children_of(const std::string& process) {
  std::vector<std::int64_t> children;
  std::error_code error;
  std::filesystem::directory_iterator threads(process + "/task", error);
  while (!error && threads != std::filesystem::directory_iterator()) {
    std::istringstream text(content_of(threads->path().string() + "/children"));
    for (std::int64_t child = 0; text >> child;)
      children.push_back(child);
    threads.increment(error);
  }
  return children;
}

// proc(5): utime, stime, cutime and cstime are the fields 14 to 17.
Duration cpu_in_stat(const std::string& stat) {
  std::int64_t ticks = 0;
  for (const int index : {14, 15, 16, 17})
    ticks += stat_field(stat, index);
  return std::chrono::nanoseconds(std::chrono::seconds(ticks)) / ::sysconf(_SC_CLK_TCK);
}

// proc(5): the second and third numbers of statm are resident and shared pages.
enum class Pages : std::uint8_t { All, Own };
std::uint64_t bytes_in_statm(const std::string& statm, Pages pages) {
  std::istringstream text(statm);
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  std::uint64_t shared = 0;
  text >> all >> resident >> shared;
  const std::uint64_t counted = pages == Pages::All ? resident : resident - shared;
  return counted * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::int64_t stat_field(const std::string& stat, int index) {
  constexpr int kFirst = 3;
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(stat.substr(name_end + 1));
  std::string field;
  for (int at = kFirst; at <= index; ++at)
    if (!(rest >> field)) return 0;
  return std::strtoll(field.c_str(), nullptr, 10);
}

Duration process_cpu_time() {
  return cpu_of(RUSAGE_SELF);
}

ProcessUse process_use() {
  ProcessUse use{.cpu = process_cpu_time() + cpu_of(RUSAGE_CHILDREN),
                 .resident_bytes = bytes_in_statm(content_of("/proc/self/statm"), Pages::All)};
  std::vector<std::int64_t> found = children_of("/proc/self");
  for (std::size_t at = 0; at < found.size() && at < kProcessesMax; ++at) {
    const std::string process = fmt::format("/proc/{}", found[at]);
    use.cpu += cpu_in_stat(content_of(process + "/stat"));
    use.resident_bytes += bytes_in_statm(content_of(process + "/statm"), Pages::Own);
    const std::vector<std::int64_t> children = children_of(process);
    found.insert(found.end(), children.begin(), children.end());
  }
  return use;
}

}  // namespace hangar::io
