// Functions of libc for which a static program would load shared libraries at run time: glibc's
// name services (NSS) and dlopen. Linked into static programs ahead of libc.a, so that its own are
// left out. hangar resolves names by c-ares, which reads /etc/hosts, /etc/resolv.conf and
// /etc/nsswitch.conf itself; what refers to these functions are parts of libraries that it does not
// use. They fail as for an unknown name.
#include <dlfcn.h>
#include <netdb.h>
#include <pwd.h>
#include <stddef.h>
#include <sys/socket.h>

// All that libc.a has in one file with them, or its own would be linked as well.
int getaddrinfo(const char* node, const char* service, const struct addrinfo* hints,
                struct addrinfo** result) {
  (void)node, (void)service, (void)hints;
  *result = NULL;
  return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo* list) {
  (void)list;
}

int getnameinfo(const struct sockaddr* address, socklen_t address_size, char* host,
                socklen_t host_size, char* service, socklen_t service_size, int flags) {
  (void)address, (void)address_size, (void)host, (void)host_size, (void)service, (void)service_size,
      (void)flags;
  return EAI_FAIL;
}

struct hostent* gethostbyname(const char* name) {
  (void)name;
  h_errno = NO_RECOVERY;
  return NULL;
}

struct servent* getservbyname(const char* name, const char* protocol) {
  (void)name, (void)protocol;
  return NULL;
}

int getservbyname_r(const char* name, const char* protocol, struct servent* entry, char* buffer,
                    size_t size, struct servent** result) {
  (void)name, (void)protocol, (void)entry, (void)buffer, (void)size;
  *result = NULL;
  return 0;
}

int getservbyport_r(int port, const char* protocol, struct servent* entry, char* buffer,
                    size_t size, struct servent** result) {
  (void)port, (void)protocol, (void)entry, (void)buffer, (void)size;
  *result = NULL;
  return 0;
}

int getpwuid_r(uid_t user, struct passwd* entry, char* buffer, size_t size,
               struct passwd** result) {
  (void)user, (void)entry, (void)buffer, (void)size;
  *result = NULL;
  return 0;
}

// OpenSSL loads engines and modules by it where its configuration names some.
void* dlopen(const char* file, int flags) {
  (void)file, (void)flags;
  return NULL;
}
