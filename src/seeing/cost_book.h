// Adds up what namespaces and modules cost. No I/O, no clock.
//
// Turns and requests are added as they happen; memory and disk are looked at every few seconds and
// count for the time since the look before. Processor time of namespaces is measured elsewhere
// (budget::Rates): what a namespace used beyond its turns, for compiling and answers, is a row
// without a module. The host itself is what its processes used beyond all namespaces, so the rows
// together are the processes' own measures.
//
// Guarantees: no more than kCostRowsMax rows are kept, and of one namespace no more than
// kCostModulesMax modules; what comes later is added to the namespace's row without a module, or to
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
  using PerNamespace = std::map<std::string, std::uint64_t, std::less<>>;  // Of bytes.

  void on_turn(const recorder::Turn& turn);
  // `module`: that of the guest; empty: the one of its next turn.
  void on_asked(const recorder::Asked& asked, std::string_view module);
  void on_answered(const recorder::Answered& answered, std::string_view module);

  // What is held at one moment.
  struct Look {
    struct Guests {
      std::string namespace_;
      std::string module;
      std::uint64_t memory_bytes = 0;
      std::uint64_t disk_bytes = 0;
    };
    std::vector<Guests> guests;
    // Of namespaces, by their label: what they hold beyond `guests`, and of the cache.
    PerNamespace other_memory;
    PerNamespace other_disk;
    PerNamespace cache;
    std::uint64_t cache_bytes = 0;     // The whole cache.
    std::uint64_t resident_bytes = 0;  // Of the host's processes.
  };
  // What guests hold is not all resident: it is scaled down where it exceeds `resident_bytes`. The
  // cache is shared: where the shares exceed it, they are scaled down likewise.
  void look(Look look, Duration passed);

  // `cpu`: of namespaces, by their label, in all. `processes`: of the host's processes.
  [[nodiscard]] std::vector<CostRow> rows(const std::map<std::string, Duration>& cpu,
                                          Duration processes) const;
  // The processes' own measures.
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
