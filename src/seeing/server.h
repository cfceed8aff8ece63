// The HTTPS server that shows recorded turns and writes to users of the cluster, within the rights
// that the same user has at the API server.
//
// Guarantees:
//   - A caller is authenticated and authorised before any record is read. A table keeps only the
//     guests that the caller may list.
//   - One thread of low priority reads the files. Answers, waiting requests and the rate of each
//     user are limited; waiting users take turns. The ServiceAccounts of a namespace count as one
//     user.
//   - A host that does not lead says so instead of answering: its records are old.
//
// Loop thread only. The loop is its own, so that requests take no time from the main loop
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
#include "seeing/cost.h"
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
    std::filesystem::path directory;  // The directory of the records.
    kube::Resource operators;
    // The host's current guests. The tasks run on this loop and finish soon.
    std::function<io::Task<Result<std::vector<PresentGuest>>>()> present;
    // Resources of guests other than operators. Same conditions.
    std::function<io::Task<Result<std::vector<kube::Resource>>>()> guest_resources;
    // The costs of all namespaces. Same conditions.
    std::function<io::Task<Result<FoundCost>>()> cost;
    // The open watches of a user's guests.
    std::function<io::Task<Result<std::vector<Right>>>(std::string user)> watches;
  };
  // `client` sends reviews with the host's rights. Destroy it after the loop has stopped.
  Server(io::Loop& loop, const kube::Client& client, Metrics& metrics, Log log, Options options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Listens from the first call on, with the certificate of the last call. Errors: those of
  // http::Server.
  [[nodiscard]] Result<> listen(const std::string& address, http::ServerOptions::Tls certificate);
  // From now on the host leads: its records are current.
  void lead() { is_leading_ = true; }
  // Cancels pending requests, gives their answers a short time to be sent, and stops listening.
  [[nodiscard]] io::Task<void> stop();

 private:
  [[nodiscard]] io::Task<http::Response> answer(http::ServerRequest request);
  [[nodiscard]] io::Task<Result<std::string>> answer(kube::Identity identity,
                                                     http::ServerRequest request,
                                                     std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::string>> turns(kube::Identity identity, std::string body,
                                                    std::stop_token stop);
  // The turns of a question that the identity may see. Denied: it may see none.
  [[nodiscard]] io::Task<Result<FoundTurns>> shown_turns(kube::Identity identity,
                                                         TurnsQuestion question,
                                                         std::stop_token stop);
  // The same for an Airway and its instances.
  [[nodiscard]] io::Task<Result<ShownGuests>> shown_guests(kube::Identity identity,
                                                           TurnsQuestion question,
                                                           std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::string>> writes(kube::Identity identity, std::string body,
                                                     std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::string>> uses(kube::Identity identity, std::string body,
                                                   std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::string>> top(kube::Identity identity, std::string body,
                                                  std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::string>> cost(kube::Identity identity, std::string body,
                                                   std::stop_token stop);
  // Removes the rows of namespaces in which the identity may not list operators. Denied if it may
  // list none.
  [[nodiscard]] io::Task<Result<>> leave_listed(kube::Identity identity, std::string namespace_,
                                                FoundCost& found, std::stop_token stop);
  // The object of a guest in the cluster. An Operator has its own name; other guests have that of
  // their resource, too ("backends.examples.com/web").
  struct GuestObject {
    kube::Resource resource;
    kube::ObjectKey key;
  };
  [[nodiscard]] GuestObject object_of(const kube::ObjectKey& guest) const;
  // Denied: the identity may not get that guest.
  [[nodiscard]] io::Task<Result<>> require_guest(kube::Identity identity, kube::ObjectKey guest,
                                                 std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::set<kube::ObjectKey>>> may_get_guests(
      kube::Identity identity, std::set<kube::ObjectKey> guests, std::stop_token stop);
  // Denied: the identity may list nothing there.
  [[nodiscard]] io::Task<Result<>> require_any_list(kube::Identity identity, std::string namespace_,
                                                    const std::vector<PresentGuest>& guests,
                                                    std::stop_token stop);
  [[nodiscard]] std::string may_list_nothing(const kube::Identity& identity,
                                             const std::string& namespace_) const;
  // Removes the rows of guests that the identity may not list. Denied if it may list none.
  [[nodiscard]] io::Task<Result<>> leave_listed(kube::Identity identity, std::string namespace_,
                                                FoundTop& found, std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::vector<PresentGuest>>> present();
  [[nodiscard]] io::Task<Result<FoundCost>> cost_now();
  // False: the user, or its namespace, has sent too many requests (sharer_of()).
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
  // The host's guests at that time; requests within a second share them.
  std::vector<PresentGuest> present_;
  std::optional<Instant> present_at_;
  // The same for the costs of namespaces.
  FoundCost cost_;
  std::optional<Instant> cost_at_;
  std::stop_source stop_;
  io::Workers reader_;
};

}  // namespace hangar::seeing
