// Checks an invariant. It stays on in release builds: a host that continued with a broken invariant
// would act on the cluster with it. Bytes from a guest or a server never reach an assertion; they
// can cause only an Error.
#pragma once

#include <cstdio>
#include <cstdlib>

#define HANGAR_ASSERT(condition, why)                                                           \
  do {                                                                                          \
    if (!(condition)) [[unlikely]] {                                                            \
      std::fprintf(stderr, "%s:%d: assertion failed: %s: %s\n", __FILE__, __LINE__, #condition, \
                   (why));                                                                      \
      std::abort();                                                                             \
    }                                                                                           \
  } while (false)
