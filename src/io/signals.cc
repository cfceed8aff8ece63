#include "io/signals.h"

#include "base/assert.h"
#include "io/loop.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <initializer_list>
#include <utility>

namespace hangar::io {

Signals::Signals(Loop& loop, std::initializer_list<int> signals,
                 std::function<void(int signal)> on_signal) {
  ::sigemptyset(&blocked_);
  for (const int signal : signals)
    ::sigaddset(&blocked_, signal);
  ::pthread_sigmask(SIG_BLOCK, &blocked_, &before_);
  descriptor_ = ::signalfd(-1, &blocked_, SFD_CLOEXEC | SFD_NONBLOCK);
  HANGAR_ASSERT(descriptor_ >= 0, "a signalfd needs nothing but a free descriptor");
  watch_ = loop.watch(descriptor_, Loop::Direction::Read, [this, on_signal = std::move(on_signal)] {
    signalfd_siginfo info{};
    while (::read(descriptor_, &info, sizeof info) == sizeof info) {
      on_signal(static_cast<int>(info.ssi_signo));
    }
  });
}

Signals::~Signals() {
  watch_.reset();
  ::close(descriptor_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace hangar::io
