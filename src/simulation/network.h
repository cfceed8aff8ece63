// The way between the hosts of a simulation and the model of the API server, and what goes wrong
// on it.
//
// A host is known by its token, which each of its requests carries. Each piece of a way takes a
// time that is drawn from the seed. What happens to a request, in order: its server's name is
// looked up; a connection is made; may_send is asked; the request travels; the server acts; the
// answer travels. Faults strike at each of these.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "http/simulated_network.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/virtual_time.h"
#include "json/value.h"
#include "simulation/api_server.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::simulation {

// Of one host's way to the server, or of the server. Numbers are chances in a thousand.
struct Faults {
  std::uint32_t refused = 0;      // No connection: nothing is sent.
  std::uint32_t lost = 0;         // The connection ends before the request arrives.
  std::uint32_t answer_lost = 0;  // It ends after the server has acted.
  std::uint32_t silent = 0;       // The request arrives, and no answer ever does.
  std::uint32_t overloaded = 0;   // 429 with Retry-After.
  std::uint32_t broken = 0;       // 500.
  std::uint32_t garbage = 0;      // A success with a body that is not the answer.
  std::uint32_t cut = 0;          // A watch ends in the middle of a line, for each delivery.
  bool is_cut_off = false;        // Nothing passes, in either direction.
  bool names_are_silent = false;  // The name servers do not answer.
  Duration request_max = std::chrono::milliseconds(20);  // Until a request arrives.
  Duration answer_max = std::chrono::milliseconds(20);
};

class Network final : public http::SimulatedNetwork {
 public:
  // How a client looks up names. Blocking: as a client without a resolver of its own would do it,
  // so that a test can show what the simulation makes of that.
  enum class Lookups : std::uint8_t { OnTheLoop, Blocking };
  Network(io::VirtualTime& time, ApiServer& server, Lookups lookups = Lookups::OnTheLoop);
  ~Network() override;

  [[nodiscard]] io::Task<Result<http::Response>> carry(
      io::Loop& loop, http::Request request, std::optional<http::Client::StreamHandler> handler,
      std::stop_token stop) override;

  [[nodiscard]] Faults& faults_of(const std::string& host) { return faults_[host]; }

  // What the server has done with a request, at the moment when it did.
  struct Acted {
    std::string host;
    const ApiRequest& request;
    const ApiAnswer& answer;
  };
  void set_on_act(std::function<void(const Acted&)> on_act) { on_act_ = std::move(on_act); }

  // Called for each request that arrives, before the server acts; a result is the answer in place
  // of the server's.
  using OnArrival = std::function<std::optional<ApiAnswer>(const ApiRequest& request)>;
  void set_on_arrival(OnArrival on_arrival) { on_arrival_ = std::move(on_arrival); }

  struct Statistics {
    std::uint64_t requests = 0;
    std::uint64_t faults = 0;
    std::uint64_t events = 0;  // Lines of watches.
  };
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }
  // The requests of some hosts that have not ended.
  struct Open {
    std::size_t count = 0;
    // Of the oldest one that is not a stream.
    Duration age{};
    std::string target;
  };
  [[nodiscard]] Open oldest_request(const std::function<bool(const std::string& host)>& of) const;

 private:
  struct Exchange;
  using ExchangePtr = std::shared_ptr<Exchange>;

  void look_up(const ExchangePtr& exchange);
  void send(const ExchangePtr& exchange);
  void act(const ExchangePtr& exchange);
  void answer(const ExchangePtr& exchange, ApiAnswer answer);
  [[nodiscard]] json::String garbage_in_place_of(const json::Value& body);
  void open_stream(const ExchangePtr& exchange, ApiServer::Watch watch);
  void deliver_soon(const ExchangePtr& exchange);
  void deliver(const ExchangePtr& exchange);
  void pass_lines(const ExchangePtr& exchange, std::vector<std::string> lines, bool is_over);
  // Ends the exchange in a later turn of its loop.
  void end(const ExchangePtr& exchange, Result<http::Response> result);
  void fail(const ExchangePtr& exchange, std::string why);
  void watch_idleness(const ExchangePtr& exchange);
  [[nodiscard]] bool strikes(std::uint32_t per_mille);
  [[nodiscard]] Duration travel(Duration max);
  void care();

  io::VirtualTime& time_;
  ApiServer& server_;
  const Lookups lookups_;
  io::VirtualTime::Queue world_;
  std::map<std::string, Faults> faults_;
  std::function<void(const Acted&)> on_act_;
  OnArrival on_arrival_;
  std::list<ExchangePtr> open_;
  Statistics statistics_;
};

}  // namespace hangar::simulation
