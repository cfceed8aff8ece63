(module ;; Exports a function under the name of its memory.
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (func (export "memory"))
  (func (export "_start") (drop (call $random (i32.const 0) (i32.const 4)))))
