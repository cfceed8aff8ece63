// Re-exported so that the C API's symbols end up in the static library.
pub use wasmtime_c_api::*;
