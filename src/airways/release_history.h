// A release's revisions, in the cluster and in memory.
//
// They are read once and kept, because only the leading host writes them. Loop thread only.
#pragma once

#include "airways/ownership.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "base/result.h"
#include "base/time.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/client.h"
#include "kube/object.h"

#include <array>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

// The resources of one revision, unpacked by `workers` for the consumer `whose`. `bytes_max`: of
// their text. Conflict if the revision is gone; other errors as for unpack().
[[nodiscard]] io::Task<Result<UnpackedRevision>> read_revision(
    io::Workers& workers, budget::Consumer whose, kube::Client client, kube::ObjectKey secret,
    std::uint64_t bytes_max, std::stop_token stop,
    io::Workers::Order order = io::Workers::Order::InTurn);

class ReleaseHistory {
 public:
  // What it keeps of the resources of revisions.
  enum class Keep : std::uint8_t {
    Content,
    Names,  // For a host, which has a history for each instance: no account counts the content.
  };
  // Packs and unpacks on `workers`, which outlive this object. `client` is copied; it is cheap.
  ReleaseHistory(io::Workers& workers, const kube::Client& client, const Release& release,
                 Keep keep = Keep::Content);

  // Sets the order of all later work. Order::First: for a deletion, which waits for no other work.
  void set_order(io::Workers::Order order) { order_ = order; }

  // Reads the Secrets unless they are loaded. After any error of this class, the next call reads
  // them again: the effect of the failed request is not known.
  [[nodiscard]] io::Task<Result<>> load(std::stop_token stop);
  // Reads them again, for callers that are not the only writer.
  [[nodiscard]] io::Task<Result<>> reload(std::stop_token stop);

  // All resources that may be in the cluster: those of the active revision and of interrupted ones.
  [[nodiscard]] const Stages& inventory() const { return inventory_; }
  [[nodiscard]] const History& history() const { return history_; }
  // The stages of the active revision; empty if none is active.
  [[nodiscard]] const Stages& active() const { return active_; }
  // The stages of the newest revision, active or not.
  [[nodiscard]] const Stages& newest() const {
    return pending_.empty() ? active_ : pending_.back().stages;
  }
  [[nodiscard]] bool is_interrupted() const { return !pending_.empty(); }
  // The Secret of the newest revision that waits for its activation; empty if there is none.
  [[nodiscard]] std::string_view recorded() const {
    return pending_.empty() ? std::string_view() : pending_.back().secret;
  }

  // Makes `stages` the newest revision, not yet active. Does nothing if the newest revision has
  // these stages already. Removes interrupted revisions whose resources are all in the newest or
  // the active one: a flight whose output changes with every retry must not fill a namespace with
  // Secrets.
  [[nodiscard]] io::Task<Result<>> record(const Stages& stages, const Source& source, WallTime now,
                                          std::stop_token stop);
  // To be called when all of the newest revision is applied and the rest is pruned: activates it,
  // and removes revisions beyond `count_max`.
  [[nodiscard]] io::Task<Result<>> activate(WallTime now, std::optional<std::uint32_t> count_max,
                                            std::stop_token stop);
  // To be called when all of an older revision is applied again and the rest is pruned: makes it
  // the active one, and removes interrupted ones. `stages`: those of the revision.
  [[nodiscard]] io::Task<Result<>> activate_again(Revision revision, Stages stages, WallTime now,
                                                  std::stop_token stop);
  // The release is gone: removes every revision.
  [[nodiscard]] io::Task<Result<>> erase(std::stop_token stop);

 private:
  struct Pending {
    std::string secret;
    Stages stages;
  };
  // What is kept of a revision.
  struct Kept {
    Stages stages;
    // Of their content; std::nullopt: they have it.
    std::optional<std::array<std::uint64_t, 2>> digest = {};
  };
  // For workers: it takes as long as the content is large.
  [[nodiscard]] static Kept kept_of(Stages stages, Keep keep);

  [[nodiscard]] io::Task<Result<>> read(std::stop_token stop);
  [[nodiscard]] io::Task<Result<History>> read_revisions(std::stop_token stop);
  // Subtracts the bytes that it reads from `bytes_left`.
  [[nodiscard]] io::Task<Result<Kept>> read_resources(std::string secret_name,
                                                      std::uint64_t& bytes_left,
                                                      std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> drop_superseded(std::stop_token stop);
  // Makes the revision of that Secret the active one in the cluster, and removes interrupted ones.
  [[nodiscard]] io::Task<Result<>> make_active(std::string secret, WallTime now,
                                               std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> remove(std::string secret, std::stop_token stop);
  void take_inventory();
  [[nodiscard]] bool is_newest(const Stages& stages) const;

  io::Workers* workers_;  // A pointer, so that a history can be moved.
  kube::Client client_;
  budget::Consumer whose_;  // The consumer that workers work for.
  io::Workers::Order order_ = io::Workers::Order::InTurn;
  std::string release_;
  std::string namespace_;
  Keep keep_;

  bool loaded_ = false;
  History history_;
  Stages active_;                                       // Of the active revision.
  std::optional<std::array<std::uint64_t, 2>> digest_;  // Of newest(), as in Kept.
  Stages inventory_;  // active_ and the stages of interrupted revisions.
  // Revisions that wait for their activation, the newest last.
  std::vector<Pending> pending_;
};

}  // namespace hangar::airways
