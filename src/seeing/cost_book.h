// Adds up the costs of namespaces and modules. No I/O, no clock.
//
// Turns and requests are added as they happen; memory and disk are measured every few seconds and
// count for the time since the last measurement. Processor time of namespaces is measured elsewhere
// (budget::Rates): the part beyond a namespace's turns, for compiling, answers and reconciles, is a
// row without a module. The row of the host is the use of its processes beyond all namespaces, so
// the sum of the rows is the measured use of the processes.
//
// Guarantees: no more than kCostRowsMax rows are kept, with no more than kCostModulesMax modules of
// one namespace; the cost of further ones is added to the namespace's row without a module, or to
// kOthersRow. One thread.
#pragma once

#include "base/time.h"
#include "recorder/record.h"
#include "seeing/cost.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace hangar::seeing {

class CostBook {
 public:
  using PerNamespace = std::map<std::string, std::uint64_t, std::less<>>;  // Bytes.

  void on_turn(const recorder::Turn& turn);
  // `module`: the guest's module; empty: its next turn names it.
  void on_asked(const recorder::Asked& asked, std::string_view module);
  void on_answered(const recorder::Answered& answered, std::string_view module);

  // The resources that are held at one moment.
  struct Look {
    struct Guests {
      std::string namespace_;
      std::string module;
      std::uint64_t memory_bytes = 0;
      std::uint64_t disk_bytes = 0;
    };
    std::vector<Guests> guests;
    // By the labels of namespaces: the bytes that they hold in addition to `guests`, and their
    // shares of the cache.
    PerNamespace other_memory;
    PerNamespace other_disk;
    PerNamespace cache;
    std::uint64_t cache_bytes = 0;     // The whole cache.
    std::uint64_t resident_bytes = 0;  // Resident memory of the host's processes.
  };
  // Not all memory of guests is resident: if it exceeds `resident_bytes`, it is scaled down. The
  // cache is shared: if the shares exceed it, they are scaled down, too.
  void look(Look look, Duration passed);

  // `cpu`: total processor time of namespaces, by their label. `processes`: that of the
  // host's processes.
  [[nodiscard]] std::vector<CostRow> rows(const std::map<std::string, Duration>& cpu,
                                          Duration processes) const;
  // The measured use of the processes.
  [[nodiscard]] Cost whole(Duration processes) const;

 private:
  struct Account {
    std::map<std::string, Cost, std::less<>> modules;
    Cost other;
  };
  using Accounts = std::map<std::string, Account, std::less<>>;

  [[nodiscard]] Cost& cost_of(std::string_view namespace_, std::string_view module);
  [[nodiscard]] Account& account_of(std::string_view namespace_);
  [[nodiscard]] Cost& pending_of(const recorder::Guest& guest);

  Accounts accounts_;
  std::size_t row_count_ = 0;
  // Requests of guests whose turn is not recorded yet.
  using GuestName = std::tuple<recorder::Contract, std::string, std::string>;
  std::map<GuestName, Cost> pending_;
  std::uint64_t resident_byte_seconds_ = 0;
  std::uint64_t cache_byte_seconds_ = 0;
};

}  // namespace hangar::seeing
