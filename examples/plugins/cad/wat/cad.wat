;; CAD.WASM key value
;;
;; Deletes key if it holds value: 1 if it did, 0 if it holds something else, -1 if
;; there is no such key, an error if it is not a string. The same plugin as
;; ../c/cad.c, to show that nothing is hidden in the header: this is all there is.
(module
  (import "latchkey_v1" "cad_args" (func $cad_args (param i32 i32) (result i32)))
  (import "latchkey_v1" "reply_int" (func $reply_int (param i64)))

  ;; The arena takes all of the memory but its first 16 bytes, so that no frame
  ;; has the address 0.
  (memory (export "memory") 1)

  (func (export "lk_abi") (result i32) (i32.const 1))

  (func (export "lk_init") (result i32) (i32.const 0))

  ;; Returns the arena, grown to size bytes, or 0.
  (func (export "lk_arena") (param $size i32) (result i32)
    (local $pages i64)
    ;; pages = ceil((16 + size) / 65536) - memory.size
    (local.set $pages
      (i64.sub
        (i64.shr_u (i64.add (i64.extend_i32_u (local.get $size)) (i64.const 65551)) (i64.const 16))
        (i64.extend_i32_u (memory.size))))
    (if (i64.gt_s (local.get $pages) (i64.const 0))
      (then
        (if (i32.eq (memory.grow (i32.wrap_i64 (local.get $pages))) (i32.const -1))
          (then (return (i32.const 0))))))
    (i32.const 16))

  ;; Argument 0 is the command's name, 1 the key, 2 the value. What the client has sent can
  ;; be read in the frame as well, where pointer and length of argument n are at 16 + 8n.
  (func (export "lk_command") (param $id i32) (param $argc i32) (param $frame i32) (result i32)
    (local $r i32)
    (local.set $r (call $cad_args (i32.const 1) (i32.const 2)))
    ;; -100 and below are errors, which the host words for the client.
    (if (i32.le_s (local.get $r) (i32.const -100))
      (then (return (local.get $r))))
    (call $reply_int (i64.extend_i32_s (local.get $r)))
    (i32.const 0)))
