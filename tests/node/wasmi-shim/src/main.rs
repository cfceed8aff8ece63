//! A containerd shim for the tests of node provisioning: runs a container whose entrypoint is a Wasm module
//! (WASI preview 1) in the interpreter wasmi. It is small, so that a test can build it; not meant for use.

use anyhow::{Context, Result};
use containerd_shim_wasm::{
    sandbox::{Sandbox, context::RuntimeContext},
    shim::{Cli, Shim},
};
use wasmi::{Engine, Linker, Module, Store};
use wasmi_wasi::{WasiCtx, sync::WasiCtxBuilder};

struct WasmiShim;

#[derive(Default)]
struct WasmiSandbox;

impl Shim for WasmiShim {
    type Sandbox = WasmiSandbox;

    fn name() -> &'static str {
        "wasmi"
    }
}

impl Sandbox for WasmiSandbox {
    async fn run_wasi(&self, context: &impl RuntimeContext) -> Result<i32> {
        let entrypoint = context.entrypoint();
        let engine = Engine::default();
        let module = Module::new(&engine, entrypoint.source.as_bytes()?)?;

        let environment: Vec<(String, String)> = context
            .envs()
            .iter()
            .filter_map(|one| one.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let wasi = WasiCtxBuilder::new()
            .inherit_stdio()
            .args(context.args())?
            .envs(&environment)?
            .build();

        let mut store = Store::new(&engine, wasi);
        let mut linker: Linker<WasiCtx> = Linker::new(&engine);
        wasmi_wasi::add_to_linker(&mut linker, |wasi| wasi)?;
        let instance = linker.instantiate_and_start(&mut store, &module)?;
        let function = instance
            .get_typed_func::<(), ()>(&store, &entrypoint.func)
            .with_context(|| format!("the module has no function {}", entrypoint.func))?;
        match function.call(&mut store, ()) {
            Ok(()) => Ok(0),
            Err(error) => error.i32_exit_status().map_or(Err(error.into()), Ok),
        }
    }
}

fn main() {
    WasmiShim::run(None);
}
