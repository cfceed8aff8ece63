;; An instance that is called repeatedly. It has a global of every numeric type, data in two places, a
;; start function, and more memory than it ever writes to.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 4 64)
  (data (i32.const 16) "data at the beginning")
  (data (i32.const 8190) "data over the end of a page")
  (data (i32.const 200000) "and far from both")
  (global $count (mut i32) (i32.const 5))
  (global $random (mut i64) (i64.const 88172645463325252))
  (global $single (mut f32) (f32.const 1.5))
  (global $double (mut f64) (f64.const 2.5))
  (global $vector (mut v128) (v128.const i64x2 1 2))
  (global $constant i32 (i32.const 42))
  (func $start (i32.store (i32.const 1024) (i32.const 77)))
  (start $start)

  (func $next (result i64)
    (global.set $random (i64.xor (global.get $random) (i64.shl (global.get $random) (i64.const 13))))
    (global.set $random (i64.xor (global.get $random) (i64.shr_u (global.get $random) (i64.const 7))))
    (global.set $random (i64.xor (global.get $random) (i64.shl (global.get $random) (i64.const 17))))
    (global.get $random))

  ;; Changes every global and `writes` places of the memory; returns a number that depends on all earlier calls.
  (func (export "work") (param $writes i32) (result i64)
    (local $address i32)
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (global.set $single (f32.mul (global.get $single) (f32.const 1.25)))
    (global.set $double (f64.add (global.get $double) (f64.const 0.1)))
    (global.set $vector (i64x2.add (global.get $vector) (i64x2.splat (call $next))))
    (block $done
      (loop $again
        (br_if $done (i32.eqz (local.get $writes)))
        (local.set $writes (i32.sub (local.get $writes) (i32.const 1)))
        (local.set $address
          (i32.and
            (i32.rem_u (i32.wrap_i64 (call $next)) (i32.mul (memory.size) (i32.const 65536)))
            (i32.const -8)))
        (i64.store (local.get $address)
          (i64.add (i64.load (local.get $address)) (global.get $random)))
        (br $again)))
    (i64.add
      (i64.add (call $next) (i64.extend_i32_u (i32.load (i32.const 1024))))
      (i64.add (i64x2.extract_lane 1 (global.get $vector))
        (i64.add (i64.extend_i32_u (global.get $count))
          (i64.add (i64.trunc_sat_f64_s (f64.mul (global.get $double) (f64.const 1000)))
            (i64.trunc_sat_f32_s (global.get $single)))))))

  (func (export "grow") (param $pages i32) (result i32) (memory.grow (local.get $pages)))
  (func (export "load") (param $address i32) (result i64) (i64.load (local.get $address)))
  (func (export "store") (param $address i32) (param $value i64)
    (i64.store (local.get $address) (local.get $value)))
  (func (export "spin") (loop $for_ever (br $for_ever)))
  (func $fail (unreachable))
  (func (export "fail") (call $fail))
  (func (export "leave") (call $proc_exit (i32.const 3))))
