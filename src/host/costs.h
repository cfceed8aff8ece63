// Collects the cost of each namespace and module on this host from the parts that count it, for
// `hangar top --cost` and for metrics.
#pragma once

#include "base/metrics.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/rates.h"
#include "gateway/gateway.h"
#include "io/loop.h"
#include "kube/cache/cache.h"
#include "operators/operator_controller.h"
#include "recorder/observer.h"
#include "recorder/record.h"
#include "recorder/recorder.h"
#include "seeing/cost.h"
#include "seeing/cost_book.h"
#include "seeing/cost_series.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hangar::host {

// Main loop. The metrics may be scraped by another thread.
class Costs final : public recorder::Observer {
 public:
  struct Sources {
    io::Loop& loop;
    const budget::Rates& rates;      // Processor time of namespaces.
    const budget::Accounts& memory;  // Memory of all guests.
    const budget::Accounts& disk;    // Disk of sleeping guests.
    const kube::Cache& cache;
    const gateway::Gateway& gateway;
    const operators::OperatorController& operators;
  };
  // All sources outlive this object. From now on it observes the turns that `recorder` records.
  Costs(Sources sources, recorder::Recorder& recorder, Metrics& metrics);
  Costs(const Costs&) = delete;
  Costs& operator=(const Costs&) = delete;
  ~Costs();

  [[nodiscard]] seeing::FoundCost now();

  void on_turn(const recorder::Turn& turn) override;
  void on_asked(const recorder::Asked& asked) override;
  void on_answered(const recorder::Answered& answered) override;

 private:
  // Returns all rows.
  std::vector<seeing::CostRow> look();
  void look_later();
  // The digest of a running operator's module; empty for other guests: then the guest's next turn
  // names the module.
  [[nodiscard]] std::string module_of(const recorder::Guest& guest) const;
  [[nodiscard]] std::map<std::string, Duration> processor_time() const;
  void collect(Metrics::Families& families) const;

  const Sources sources_;
  recorder::Recorder& recorder_;
  const WallTime began_;
  seeing::CostBook book_;
  Instant looked_;
  Duration processes_cpu_{};
  seeing::CostSeries series_;
  io::Loop::Timer timer_;
  mutable std::mutex mutex_;
  std::vector<seeing::CostRow> shown_;  // By namespace, for metrics.
  const std::unique_ptr<Metrics::Collection> collection_;
};

}  // namespace hangar::host
