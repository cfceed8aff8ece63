// A C++ program that lives from call to call: its state is spread over the heap of its allocator,
// grows and shrinks, and every call reads all of it.
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Account {
  std::string name;
  std::vector<std::uint64_t> entries;
};

// Created by constructors that run in _initialize.
std::map<std::string, std::unique_ptr<Account>> accounts;
std::deque<std::uint64_t> recent = {1, 2, 3};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x100'0000'01b3U;
}

}  // namespace

extern "C" {

// Books `count` amounts, drops a third of the accounts now and then, and returns a hash of the
// whole state.
__attribute__((export_name("book"))) std::uint64_t book(std::uint32_t seed, std::uint32_t count) {
  for (std::uint32_t index = 0; index < count; ++index) {
    seed = seed * 1664525 + 1013904223;
    const std::string name = "account " + std::to_string(seed % 97);
    auto& account = accounts[name];
    if (account == nullptr) account = std::make_unique<Account>(Account{name, {}});
    account->entries.push_back(seed >> 8U);
    recent.push_back(seed);
    if (recent.size() > 50) recent.pop_front();
  }
  if (seed % 4 == 0) {
    std::size_t place = 0;
    std::erase_if(accounts, [&place](const auto&) { return place++ % 3 == 0; });
  }
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325U;
  for (const auto& [name, account] : accounts) {
    for (const char letter : name)
      hash = mix(hash, static_cast<unsigned char>(letter));
    for (const std::uint64_t entry : account->entries)
      hash = mix(hash, entry);
  }
  for (const std::uint64_t value : recent)
    hash = mix(hash, value);
  return hash;
}

}  // extern "C"
