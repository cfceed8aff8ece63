// The HTTPS server that tells users of the cluster what is recorded: turns and writes, and of these
// what the API server would let the same user see.
//
// Guarantees:
//   - Nothing is read before it is known who asks, and that he may see it.
//   - Files are read by one thread of low priority. Answers, readers and what each user asks for
//   are
//     bounded; among users that wait the order is fair. The ServiceAccounts of a namespace are one.
//   - A host that does not lead says so: it has no records of today.
// Loop thread only: a loop of its own, so that nobody who asks takes time from those that work
// (host/seeing.h).
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/token_bucket.h"
#include "budget/fair_slots.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/client.h"
#include "kube/object.h"
#include "seeing/callers.h"
#include "seeing/find.h"
#include "seeing/rights.h"
#include "seeing/top.h"
#include "seeing/uses.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::seeing {

class Server {
 public:
  struct Options {
    std::filesystem::path directory;  // Of the records.
    kube::Resource operators;
    // What the host has now. The tasks are of this loop, and end soon.
    std::function<io::Task<Result<std::vector<PresentGuest>>>()> present;
    // Resources of other guests than operators that there may be. The same holds for that.
    std::function<io::Task<Result<std::vector<kube::Resource>>>()> guest_resources;
    // Which watches a user's guests have under way.
    std::function<io::Task<Result<std::vector<Right>>>(std::string user)> watches;
  };
  // `client` asks as the host. The loop has ended when this is destroyed.
  Server(io::Loop& loop, const kube::Client& client, Metrics& metrics, Log log, Options options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Listens, from the first call on, and shows this certificate. Errors as of http::Server.
  [[nodiscard]] Result<> listen(const std::string& address, http::ServerOptions::Tls certificate);
  // It has records from here on.
  void lead() { is_leading_ = true; }
  // Lets requests under way finish.
  [[nodiscard]] io::Task<void> stop();

 private:
  [[nodiscard]] io::Task<http::Response> answer(http::ServerRequest request);
  [[nodiscard]] io::Task<Result<std::string>> answer(kube::Identity identity,
                                                     http::ServerRequest request,
                                                     std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::string>> turns(kube::Identity identity, std::string body,
                                                    std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::string>> writes(kube::Identity identity, std::string body,
                                                     std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::string>> uses(kube::Identity identity, std::string body,
                                                   std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::string>> top(kube::Identity identity, std::string body,
                                                  std::stop_token stop);
  // What a guest is in the cluster: an Operator by its own name, others by that of their resource,
  // too ("backends.examples.com/web").
  struct GuestObject {
    kube::Resource resource;
    kube::ObjectKey key;
  };
  [[nodiscard]] GuestObject object_of(const kube::ObjectKey& guest) const;
  // Denied: it may not get that guest.
  [[nodiscard]] io::Task<Result<>> require_guest(kube::Identity identity, kube::ObjectKey guest,
                                                 std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::set<kube::ObjectKey>>> may_get_guests(
      kube::Identity identity, std::set<kube::ObjectKey> guests, std::stop_token stop);
  // Denied: there is nothing that it may list there.
  [[nodiscard]] io::Task<Result<>> require_any_list(kube::Identity identity, std::string namespace_,
                                                    const std::vector<PresentGuest>& guests,
                                                    std::stop_token stop);
  [[nodiscard]] std::string may_list_nothing(const kube::Identity& identity,
                                             const std::string& namespace_) const;
  // Leaves the rows of what it may list there.
  [[nodiscard]] io::Task<Result<>> leave_listed(kube::Identity identity, std::string namespace_,
                                                FoundTop& found, std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::vector<PresentGuest>>> present();
  // False: that user, or its namespace, has asked too often (sharer_of()).
  [[nodiscard]] bool admit(const std::string& sharer);
  void count(std::string_view path, int status);

  io::Loop& loop_;
  Metrics& metrics_;
  Histogram& seconds_;
  const Log log_;
  const Options options_;
  Callers callers_;
  Rights rights_;
  budget::FairSlots slots_;
  std::map<std::string, TokenBucket> sharers_;
  std::unique_ptr<http::Server> server_;  // Null until listen().
  bool is_leading_ = false;
  // What the host had at that time: many tables are one look.
  std::vector<PresentGuest> present_;
  std::optional<Instant> present_at_;
  std::stop_source stop_;
  io::Workers reader_;
};

}  // namespace hangar::seeing
