// Which Flights are worked on at the same time.
//
// A flight may take a minute of its time on purpose. So a namespace holds no more places than it
// leaves free: one that had nothing to do finds a place at once, whatever the others do. The rule
// is that of budget::FairSlots; here nobody waits with a reconcile's slot in the hand: a Flight
// that has to wait is named by the end() that makes room for it. No I/O. Loop thread only.
#pragma once

#include "kube/object.h"

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace hangar::airways {

class FlightTurns {
 public:
  explicit FlightTurns(std::size_t places) : free_(places) {}
  FlightTurns(const FlightTurns&) = delete;
  FlightTurns& operator=(const FlightTurns&) = delete;

  // Whether this one may be worked on now: then end() follows. Otherwise it waits.
  [[nodiscard]] bool begin(const kube::ObjectKey& flight);
  // One of the namespace is done. Who is to begin() again, since there is room: they wait no
  // longer. Namespaces take turns, and of one of them who has waited longest goes first.
  [[nodiscard]] std::vector<kube::ObjectKey> end(const std::string& namespace_);
  // It waits for nothing any more.
  void forget(const kube::ObjectKey& flight);

  [[nodiscard]] std::size_t held_count(const std::string& namespace_) const;

 private:
  // `free`: places, of which this one may be the next.
  [[nodiscard]] static bool may_take(std::size_t held, std::size_t free) { return held < free; }

  std::size_t free_;
  std::map<std::string, std::size_t> held_;                     // By namespaces that hold any.
  std::map<std::string, std::deque<kube::ObjectKey>> waiting_;  // None of them empty.
  std::string last_served_;
};

}  // namespace hangar::airways
