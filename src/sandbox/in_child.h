// For tests of what a process gives up: it is given up by a child.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace hangar::sandbox {

// What `attempt` returns in a child of this process, of which the lowest eight bits count; the
// negative number of the signal that ended it.
inline int in_child(const std::function<int()>& attempt) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(attempt());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace hangar::sandbox
