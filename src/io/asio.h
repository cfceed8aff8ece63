// Asio's view of the loop, only for the folders that wrap network libraries (io/ and http/).
#pragma once

#include "io/loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <atomic>
#include <thread>

namespace hangar::io {

struct Loop::Asio {
  // One thread runs it, so Asio needs no locks between handlers; post() from elsewhere stays safe.
  boost::asio::io_context context{1};
  std::atomic<std::thread::id> thread{};
};

}  // namespace hangar::io
