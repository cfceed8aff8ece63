// Tests of privileges that a process drops run in a child process, because they cannot be regained.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace hangar::sandbox {

// Runs `attempt` in a forked child and returns the lowest eight bits of its result, or the negative
// number of the signal that killed the child.
inline int in_child(const std::function<int()>& attempt) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(attempt());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace hangar::sandbox
