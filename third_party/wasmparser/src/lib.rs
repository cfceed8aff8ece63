//! Reading, rewriting and linking of WebAssembly modules for hangar, on `wasmparser` and
//! `wasm-encoder`. `ffi` is the C boundary and has all unsafe code; include/hangar_wasmparser.h
//! describes it.
#![deny(unsafe_code)]

mod error;
mod ffi;
mod header;
mod link;
mod operators;
mod rewrite;
