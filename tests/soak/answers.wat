(module ;; Answers questions without a compiler, a library or an allocator: it watches a collection, and writes the number of
  ;; the last object that it heard of into an object of its own. Arguments:
  ;;   1  path of the watch                    3  the answer as JSON, up to where the number's digits begin
  ;;   2  path of the answer, with its query   4  the rest of it
  ;; It keeps the last number only, writes one answer at a time, and asks again a second after something went wrong.
  (import "http-proxy-abi" "request" (func $request (param i32 i32 i32) (result i64)))
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  ;; 64: constants. 512: addresses of arguments. 1024: arguments. 8192: digits. 16384: a request. 65536: what was brought.
  (data (i32.const 64) "GET")
  (data (i32.const 80) "PATCH")
  (data (i32.const 96) "content-type")
  (data (i32.const 128) "application/apply-patch+yaml")
  (data (i32.const 160) "\22number\22:\22")
  (global $watch (mut i64) (i64.const -1))
  (global $answer (mut i64) (i64.const -1))
  (global $watch_later (mut i64) (i64.const -1))
  (global $answer_later (mut i64) (i64.const -1))
  (global $digits (mut i32) (i32.const 0))
  ;; The number is not answered yet.
  (global $is_due (mut i32) (i32.const 0))
  (global $has_failed (mut i32) (i32.const 0))

  (func $argument (param $index i32) (result i32)
    (i32.load offset=512 (i32.mul (local.get $index) (i32.const 4))))
  (func $length (param $at i32) (result i32)
    (local $end i32)
    (local.set $end (local.get $at))
    (loop $more
      (if (i32.load8_u (local.get $end))
        (then (local.set $end (i32.add (local.get $end) (i32.const 1))) (br $more))))
    (i32.sub (local.get $end) (local.get $at)))

  ;; Each appends to the request at $to and returns its new end.
  (func $put_number (param $to i32) (param $value i32) (result i32)
    (i64.store (local.get $to) (i64.extend_i32_u (local.get $value)))
    (i32.add (local.get $to) (i32.const 8)))
  (func $put_bytes (param $to i32) (param $from i32) (param $size i32) (result i32)
    (memory.copy (local.get $to) (local.get $from) (local.get $size))
    (i32.add (local.get $to) (local.get $size)))
  (func $put (param $to i32) (param $from i32) (param $size i32) (result i32)
    (call $put_bytes (call $put_number (local.get $to) (local.get $size)) (local.get $from) (local.get $size)))

  (func $begin_watch
    (local $end i32)
    (local.set $end (call $put (i32.const 16384) (i32.const 64) (i32.const 3)))
    (local.set $end (call $put (local.get $end) (call $argument (i32.const 1)) (call $length (call $argument (i32.const 1)))))
    (local.set $end (call $put_number (call $put_number (local.get $end) (i32.const 0)) (i32.const 0)))
    (global.set $watch (call $request (i32.const 16384) (i32.sub (local.get $end) (i32.const 16384)) (i32.const 1))))

  (func $begin_answer
    (local $end i32) (local $head i32) (local $tail i32)
    (if (i64.ne (global.get $answer) (i64.const -1)) (then (return)))
    (global.set $is_due (i32.const 0))
    (local.set $head (call $length (call $argument (i32.const 3))))
    (local.set $tail (call $length (call $argument (i32.const 4))))
    (local.set $end (call $put (i32.const 16384) (i32.const 80) (i32.const 5)))
    (local.set $end (call $put (local.get $end) (call $argument (i32.const 2)) (call $length (call $argument (i32.const 2)))))
    (local.set $end (call $put (call $put_number (local.get $end) (i32.const 1)) (i32.const 96) (i32.const 12)))
    (local.set $end (call $put (call $put_number (local.get $end) (i32.const 1)) (i32.const 128) (i32.const 28)))
    (local.set $end (call $put_number (local.get $end) (i32.add (i32.add (local.get $head) (local.get $tail)) (global.get $digits))))
    (local.set $end (call $put_bytes (local.get $end) (call $argument (i32.const 3)) (local.get $head)))
    (local.set $end (call $put_bytes (local.get $end) (i32.const 8192) (global.get $digits)))
    (local.set $end (call $put_bytes (local.get $end) (call $argument (i32.const 4)) (local.get $tail)))
    (global.set $answer (call $request (i32.const 16384) (i32.sub (local.get $end) (i32.const 16384)) (i32.const 0))))

  ;; Where the digits of "number":"..." begin, or 0.
  (func $find_number (param $at i32) (param $size i32) (result i32)
    (local $end i32) (local $index i32)
    (local.set $end (i32.sub (i32.add (local.get $at) (local.get $size)) (i32.const 10)))
    (loop $next
      (if (i32.gt_s (local.get $at) (local.get $end)) (then (return (i32.const 0))))
      (local.set $index (i32.const 0))
      (block $differs
        (loop $same
          (br_if $differs (i32.ne (i32.load8_u (i32.add (local.get $at) (local.get $index)))
                                  (i32.load8_u offset=160 (local.get $index))))
          (local.set $index (i32.add (local.get $index) (i32.const 1)))
          (br_if $same (i32.lt_u (local.get $index) (i32.const 10))))
        (return (i32.add (local.get $at) (i32.const 10))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br $next))
    (unreachable))

  (func $hear (param $at i32) (param $size i32)
    (local $from i32) (local $count i32)
    (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 123)) (then (return))) ;; No line: the answer's head.
    (local.set $from (call $find_number (local.get $at) (local.get $size)))
    (if (i32.eqz (local.get $from)) (then (return)))
    (block $done
      (loop $more
        (br_if $done (i32.eq (i32.load8_u (i32.add (local.get $from) (local.get $count))) (i32.const 34)))
        (br_if $done (i32.eq (local.get $count) (i32.const 20)))
        (local.set $count (i32.add (local.get $count) (i32.const 1)))
        (br $more)))
    (memory.copy (i32.const 8192) (local.get $from) (local.get $count))
    (global.set $digits (local.get $count))
    (global.set $is_due (i32.const 1))
    (call $begin_answer))

  (func (export "_start")
    (drop (call $args_sizes_get (i32.const 0) (i32.const 4)))
    (if (i32.gt_u (i32.load (i32.const 4)) (i32.const 7168)) (then (unreachable)))
    (if (i32.ne (i32.load (i32.const 0)) (i32.const 5)) (then (unreachable)))
    (drop (call $args_get (i32.const 512) (i32.const 1024)))
    (call $begin_watch))

  ;; One place for all: what is brought is read before the next is.
  (func (export "allocate") (param $size i32) (result i32)
    (local $missing i32)
    (local.set $missing (i32.sub (i32.add (local.get $size) (i32.const 65536)) (i32.mul (memory.size) (i32.const 65536))))
    (if (i32.gt_s (local.get $missing) (i32.const 0))
      (then (drop (memory.grow (i32.add (i32.shr_u (local.get $missing) (i32.const 16)) (i32.const 1))))))
    (i32.const 65536))

  (func (export "wakeup") (param $id i64) (param $finished i32) (param $at i32) (param $size i32)
    (if (i64.eq (local.get $id) (global.get $watch))
      (then
        (if (local.get $finished)
          (then
            (global.set $watch (i64.const -1))
            (global.set $watch_later (call $delay (i64.const 1000))))
          (else (call $hear (local.get $at) (local.get $size))))
        (return)))
    (if (i64.eq (local.get $id) (global.get $answer))
      (then
        (if (i32.eqz (local.get $finished))
          (then (global.set $has_failed (i32.ne (i32.div_u (i32.load16_u (local.get $at)) (i32.const 100)) (i32.const 2))))
          (else
            (global.set $answer (i64.const -1))
            (if (global.get $has_failed)
              (then (global.set $answer_later (call $delay (i64.const 1000))))
              (else (if (global.get $is_due) (then (call $begin_answer)))))))
        (return)))
    (if (i64.eq (local.get $id) (global.get $watch_later)) (then (call $begin_watch)))
    (if (i64.eq (local.get $id) (global.get $answer_later)) (then (call $begin_answer)))))
