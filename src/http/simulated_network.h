// Carries the requests of all Clients in place of libcurl and name servers, for simulations.
//
// What it must keep of a Client's promises is what the callers rely on: a response of any status is
// no error; was_never_sent() is true of an error only if the server cannot have acted; may_send is
// asked right before the first byte; time limits end a request; a stop does, with Cancelled.
#pragma once

#include "base/result.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"

#include <optional>
#include <stop_token>
#include <string>

namespace hangar::http {

class SimulatedNetwork {
 public:
  SimulatedNetwork(const SimulatedNetwork&) = delete;
  SimulatedNetwork& operator=(const SimulatedNetwork&) = delete;

  // That of the calling thread; null: requests go to servers.
  [[nodiscard]] static SimulatedNetwork* current();

  // As Client::send() without a handler, as Client::stream() with one. On the loop of the client.
  [[nodiscard]] virtual io::Task<Result<Response>> carry(
      io::Loop& loop, Request request, std::optional<Client::StreamHandler> handler,
      std::stop_token stop) = 0;

 protected:
  // One at a time on a thread.
  SimulatedNetwork();
  virtual ~SimulatedNetwork();
};

// The message of an error of which was_never_sent() is true.
[[nodiscard]] std::string never_sent(std::string message);

}  // namespace hangar::http
