;; The output of Javy 1 to 3 for a bundle when the engine is linked dynamically. For plugin.wat.
(module
  (import "javy_quickjs_provider_v2" "canonical_abi_realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (import "javy_quickjs_provider_v2" "eval_bytecode" (func $eval (param i32 i32)))
  (import "javy_quickjs_provider_v2" "memory" (memory 0))
  (data $bytecode "{\"newState\": \"second\"}")
  (func (export "_start") (local $at i32)
    (local.tee $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 22)))
    (memory.init $bytecode (i32.const 0) (i32.const 22))
    (call $eval (local.get $at) (i32.const 22))))
