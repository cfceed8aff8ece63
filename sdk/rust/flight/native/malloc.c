// The export through which the host places an answer in the flight's memory.
//
// Its name is malloc and its type (i32) -> i64, while the symbol malloc of the C library below
// Rust's standard library has another type. Clang can give a function an export name that differs
// from its symbol; rustc cannot, so this one function is C.

extern unsigned long long hangar_flight_allocate(unsigned size_bytes);

__attribute__((export_name("malloc"))) unsigned long long hangar_flight_malloc(unsigned size_bytes) {
  return hangar_flight_allocate(size_bytes);
}
