;; A state machine whose new state is the event that it got, as text with a terminating null byte.
(module
  (memory (export "memory") 2)
  (global $next (mut i32) (i32.const 1024))
  (func (export "malloc") (param $size i32) (result i32)
    global.get $next
    (global.set $next (i32.add (global.get $next) (i32.and (i32.add (local.get $size) (i32.const 15)) (i32.const -8)))))
  (data (i32.const 16) "{\"newState\":\00")
  ;; Writes {"newState":<event>} after the bytes that malloc has returned.
  (func (export "handle_event") (param $state i32) (param $state_size i32) (param $event i32) (param $event_size i32) (result i32)
    (local $out i32)
    (local.set $out (global.get $next))
    (memory.copy (local.get $out) (i32.const 16) (i32.const 12))
    (memory.copy (i32.add (local.get $out) (i32.const 12)) (local.get $event) (local.get $event_size))
    (i32.store16 (i32.add (i32.add (local.get $out) (i32.const 12)) (local.get $event_size)) (i32.const 0x7D))
    local.get $out))
