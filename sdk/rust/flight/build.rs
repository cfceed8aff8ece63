//! Adds the exported `malloc` on WebAssembly; see `native/malloc.c` for why it is not Rust.

fn main() {
    println!("cargo:rerun-if-changed=native/malloc.c");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        cc::Build::new()
            .file("native/malloc.c")
            .link_lib_modifier("+whole-archive")
            .compile("hangar_flight_malloc");
    }
}
