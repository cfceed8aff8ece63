// Turns at work that is done once for all tasks that want it, such as compiling a module. The task
// that has the turn works in the name of all tasks behind it, so that the work does not wait in the
// queue of the first one alone. The task with the next turn finds the work done, or does it.
#pragma once

#include "base/result.h"
#include "budget/beneficiaries.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/turns.h"

#include <list>
#include <map>
#include <stop_token>
#include <utility>

namespace hangar::budget {

// First come, first served, for each key separately. A key without tasks takes no memory. Loop
// thread; outlives its turns.
template <class Key>
class SharedTurns {
  using Line = std::list<Beneficiaries>;
  using Lines = std::map<Key, Line>;

  // The place of one task that works or waits.
  class Place {
   public:
    Place(Lines& lines, Lines::iterator line, Beneficiaries beneficiaries)
        : lines_(&lines),
          line_(line),
          at_(line->second.insert(line->second.end(), std::move(beneficiaries))) {
      line->second.front().add(*at_);  // That task may already be working.
    }
    Place(Place&& other) noexcept
        : lines_(std::exchange(other.lines_, nullptr)), line_(other.line_), at_(other.at_) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (lines_ == nullptr) return;
      line_->second.erase(at_);
      if (line_->second.empty()) lines_->erase(line_);
    }

    [[nodiscard]] const Beneficiaries& all() const {
      for (const Beneficiaries& other : line_->second)
        at_->add(other);
      return *at_;
    }

   private:
    Lines* lines_;
    Lines::iterator line_;
    Line::iterator at_;
  };

 public:
  // The turn lasts until this object is destroyed.
  class Turn {
   public:
    // The task that took the turn and all tasks behind it, including those that come later.
    [[nodiscard]] const Beneficiaries& beneficiaries() const { return place_.all(); }

   private:
    friend class SharedTurns;
    Turn(Place place, io::Turns<Key>::Turn turn)
        : place_(std::move(place)), turn_(std::move(turn)) {}

    Place place_;
    io::Turns<Key>::Turn turn_;
  };

  explicit SharedTurns(io::Loop& loop) : turns_(loop) {}
  SharedTurns(const SharedTurns&) = delete;
  SharedTurns& operator=(const SharedTurns&) = delete;

  // Cancelled when a stop is requested first.
  [[nodiscard]] io::Task<Result<Turn>> take(Key key, Beneficiaries beneficiaries,
                                            std::stop_token stop) {
    Place place(lines_, lines_.try_emplace(key).first, std::move(beneficiaries));
    typename io::Turns<Key>::Turn turn =
        HANGAR_CO_TRY(co_await turns_.take(std::move(key), std::move(stop)));
    co_return Turn(std::move(place), std::move(turn));
  }

  // True when no task works or waits.
  [[nodiscard]] bool is_empty() const { return lines_.empty(); }

 private:
  io::Turns<Key> turns_;
  Lines lines_;
};

}  // namespace hangar::budget
