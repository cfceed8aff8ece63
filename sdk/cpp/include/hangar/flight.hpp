// The host's interface for a flight in C++: the release it is evaluated for, its input, and lookups
// in the cluster. One header without dependencies, exceptions or RTTI; the flight chooses its own
// JSON library.
//
// A flight is a program: it reads a custom resource from standard input and writes the resources
// that should exist to standard output. The contract is described in docs/abi/flight.md.
//
// Build it with clang for wasm32-wasi, without exceptions, and link sdk/start.c with -nostartfiles;
// build.sh is an example. Outside of WebAssembly there is no host, and every lookup ends in
// State::FeatureNotGranted.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

namespace hangar::flight {

// The host's verdict on a call. The numbers are part of the contract.
enum class State : std::uint32_t {
  Ok = 0,
  FeatureNotGranted = 1,  // the Airway does not set clusterAccess
  Error = 2,              // anything else; the message says what
  NotFound = 3,           // the object does not exist; an unknown kind is an Error
  Unauthenticated = 4,    // the cluster does not accept the host's credentials
  Forbidden = 5,          // neither owned by the release nor covered by the Airway's matchers
};

// The host's answer: a JSON document if the state is Ok, else a message for people.
struct Answer {
  State state = State::Ok;
  std::string bytes;

  explicit operator bool() const { return state == State::Ok; }
};

// Names one object. An empty namespace means "default" for kinds that are namespaced.
struct ResourceIdentifier {
  std::string_view name;
  std::string_view name_space;
  std::string_view kind;
  std::string_view api_version;
};

// Fetches an object as it is in the cluster now. The host remembers the lookup, even if the
// object does not exist: in the modes dynamic and subscription a later change to it evaluates the
// flight again.
Answer lookup(const ResourceIdentifier& identifier);

// Asks whether, and how, the cluster serves a kind, by group ("apps") or group and version
// ("apps/v1"); the core group is "" or "/v1". The document has the keys Group, Version, Kind,
// Resource and Namespaced.
Answer rest_mapping(std::string_view group_or_api_version, std::string_view kind);

// The whole of standard input.
inline std::string read_input() {
  std::string input;
  char block[4096];
  while (const std::size_t count = std::fread(block, 1, sizeof block, stdin)) {
    input.append(block, count);
  }
  return input;
}

namespace detail {

inline std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

// A buffer crosses the border as address << 32 | length; the empty one is always zero.
constexpr std::uint64_t pack(std::uint32_t address, std::uint32_t length) {
  return length == 0 ? 0 : std::uint64_t{address} << 32 | length;
}
static_assert(pack(0x8000'0000, 0x20) == 0x8000'0000'0000'0020);
static_assert(pack(0x1234, 0) == 0);

}  // namespace detail

// The name of the release: group.Kind.namespace.name for an instance of an Airway.
inline std::string_view release() {
  return detail::environment("YOKE_RELEASE");
}

// The namespace of the release: where the host puts resources that name no namespace.
inline std::string_view release_namespace() {
  return detail::environment("YOKE_NAMESPACE");
}

// The release of yoke whose contract the host keeps, such as v0.20.12; empty without a host.
inline std::string_view yoke_version() {
  return detail::environment("YOKE_VERSION");
}

// The version of hangar, such as 0.1.0; empty under other hosts.
inline std::string_view hangar_version() {
  return detail::environment("HANGAR_VERSION");
}

#ifdef __wasm__

namespace detail {

__attribute__((import_module("host"), import_name("k8s_lookup"))) std::uint64_t host_lookup(
    std::uint32_t* state, std::uint64_t name, std::uint64_t name_space, std::uint64_t kind,
    std::uint64_t api_version);

__attribute__((import_module("host"), import_name("k8s_rest_mapping"))) std::uint64_t
host_rest_mapping(std::uint32_t* state, std::uint64_t group_or_api_version, std::uint64_t kind);

inline std::uint64_t buffer_of(std::string_view text) {
  return pack(reinterpret_cast<std::uintptr_t>(text.data()),
              static_cast<std::uint32_t>(text.size()));
}

// Blocks that the host has allocated and the flight has not taken: a list, each with a header and
// the bytes that the host fills. It is a plain pointer, because it has to be right also in a
// module whose exports the linker wrapped in constructors and destructors (sdk/start.c says more
// about that).
struct Block {
  Block* next;
  std::uint32_t size_bytes;

  char* bytes() { return reinterpret_cast<char*>(this + 1); }
};
inline constinit Block* pending = nullptr;

// The export named malloc, which the host calls during an import to place its answer. It has a
// symbol of another name, because the C library's malloc keeps its own.
extern "C" __attribute__((export_name("malloc"), used)) inline std::uint64_t hangar_flight_malloc(
    std::uint32_t size_bytes) {
  if (size_bytes == 0) return 0;
  if (size_bytes > UINT32_MAX - sizeof(Block)) std::abort();
  void* memory = std::malloc(sizeof(Block) + size_bytes);
  if (memory == nullptr) std::abort();
  pending = new (memory) Block{.next = pending, .size_bytes = size_bytes};
  return buffer_of({pending->bytes(), size_bytes});
}

// Takes ownership of the buffer that an import returned. Only memory that malloc allocated is ever
// read, so a wrong answer of the host is an error and nothing worse.
inline Answer receive(std::uint32_t state, std::uint64_t buffer) {
  const auto address = static_cast<std::uint32_t>(buffer >> 32);
  const auto length = static_cast<std::uint32_t>(buffer);
  Answer answer{.state = State{state}, .bytes = {}};
  if (length == 0) return answer;
  for (Block** link = &pending; *link != nullptr; link = &(*link)->next) {
    Block* block = *link;
    if (reinterpret_cast<std::uintptr_t>(block->bytes()) != address || length > block->size_bytes) {
      continue;
    }
    answer.bytes.assign(block->bytes(), length);
    *link = block->next;
    std::free(block);
    return answer;
  }
  return {State::Error, "host returned a buffer that was not allocated for it"};
}

}  // namespace detail

inline Answer lookup(const ResourceIdentifier& identifier) {
  std::uint32_t state = 0;
  const std::uint64_t buffer = detail::host_lookup(
      &state, detail::buffer_of(identifier.name), detail::buffer_of(identifier.name_space),
      detail::buffer_of(identifier.kind), detail::buffer_of(identifier.api_version));
  return detail::receive(state, buffer);
}

inline Answer rest_mapping(std::string_view group_or_api_version, std::string_view kind) {
  std::uint32_t state = 0;
  const std::uint64_t buffer = detail::host_rest_mapping(
      &state, detail::buffer_of(group_or_api_version), detail::buffer_of(kind));
  return detail::receive(state, buffer);
}

#else

inline Answer lookup(const ResourceIdentifier&) {
  return {State::FeatureNotGranted,
          "access to the cluster has not been granted for this flight invocation"};
}

inline Answer rest_mapping(std::string_view, std::string_view) {
  return lookup({});
}

#endif

}  // namespace hangar::flight
