;; Arithmetic whose result is not a number. Operands come as bits and results go as bits, so that nothing is computed at compile
;; time, and so that the sign and the payload of a result are seen.
(module
  (memory (export "memory") 1)

  (func (export "divide_f64") (param $x i64) (param $y i64) (result i64)
    (i64.reinterpret_f64 (f64.div (f64.reinterpret_i64 (local.get $x)) (f64.reinterpret_i64 (local.get $y)))))
  (func (export "add_f64") (param $x i64) (param $y i64) (result i64)
    (i64.reinterpret_f64 (f64.add (f64.reinterpret_i64 (local.get $x)) (f64.reinterpret_i64 (local.get $y)))))
  (func (export "largest_f64") (param $x i64) (param $y i64) (result i64)
    (i64.reinterpret_f64 (f64.max (f64.reinterpret_i64 (local.get $x)) (f64.reinterpret_i64 (local.get $y)))))
  (func (export "root_f64") (param $x i64) (result i64)
    (i64.reinterpret_f64 (f64.sqrt (f64.reinterpret_i64 (local.get $x)))))
  (func (export "round_f64") (param $x i64) (result i64)
    (i64.reinterpret_f64 (f64.nearest (f64.reinterpret_i64 (local.get $x)))))
  (func (export "widen_f32") (param $x i32) (result i64)
    (i64.reinterpret_f64 (f64.promote_f32 (f32.reinterpret_i32 (local.get $x)))))
  (func (export "add_f32") (param $x i32) (param $y i32) (result i32)
    (i32.reinterpret_f32 (f32.add (f32.reinterpret_i32 (local.get $x)) (f32.reinterpret_i32 (local.get $y)))))
  (func (export "narrow_f64") (param $x i64) (result i32)
    (i32.reinterpret_f32 (f32.demote_f64 (f64.reinterpret_i64 (local.get $x)))))
  (func (export "add_f64x2") (param $x i64) (param $y i64) (result i64)
    (i64x2.extract_lane 1 (f64x2.add (i64x2.splat (local.get $x)) (i64x2.splat (local.get $y)))))
)
