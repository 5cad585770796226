;; The conformance guest of ABI 1. It imports every host function, with the type
;; that it has for ever, and calls them as its one command says:
;;
;;     ABI.RUN key [key2] WORD ...     (ABI.RUN2 has two keys)
;;
;; The words are a program for a machine with a list of numbers:
;;
;;     17, -3      append the number
;;     @2, #2      append the address, or the length, of argument 2
;;     &           append the last result
;;     T, R        append the token, or the reason, that lk_wake was given
;;     >2          write the last result to the buffer as 8 bytes, at 2 times 8
;;     %           write the numbers to the buffer, 4 bytes each, and empty the list
;;     !name       call the host function with the numbers, and empty the list; the
;;                 result of one without any is 0
;;     =           reply the last result as an integer
;;     "3          reply 3 bytes of the buffer; "& as many as the last result
;;     ^           return the last result
;;     |           the end; lk_wake goes on behind it
;;
;; Doubles are handed over as integers, and come back times 1000. The buffer is
;; at 4096 and has 4096 bytes; nothing is beyond 131072. The other exports append
;; what they are told to the list at "abi:told".
(module
  (import "latchkey_v1" "get" (func $get (param i32 i32 i32 i32) (result i32)))
  (import "latchkey_v1" "set" (func $set (param i32 i32 i32 i32 i32 i64) (result i32)))
  (import "latchkey_v1" "del" (func $del (param i32 i32) (result i32)))
  (import "latchkey_v1" "exists" (func $exists (param i32 i32) (result i32)))
  (import "latchkey_v1" "type" (func $type (param i32 i32) (result i32)))
  (import "latchkey_v1" "incrby" (func $incrby (param i32 i32 i64 i32) (result i32)))
  (import "latchkey_v1" "cas" (func $cas (param i32 i32 i32 i32 i32 i32 i64) (result i32)))
  (import "latchkey_v1" "cad" (func $cad (param i32 i32 i32 i32) (result i32)))
  (import "latchkey_v1" "pttl" (func $pttl (param i32 i32) (result i64)))
  (import "latchkey_v1" "pexpire" (func $pexpire (param i32 i32 i64) (result i32)))
  (import "latchkey_v1" "key_state_get" (func $key_state_get (param i32 i32 i32 i32 i32) (result i32)))
  (import "latchkey_v1" "key_state_set" (func $key_state_set (param i32 i32 i32 i32 i32 i32 i64) (result i32)))
  (import "latchkey_v1" "key_state_read" (func $key_state_read (param i32 i32 i32 i32 i32) (result i32)))
  (import "latchkey_v1" "key_state_write" (func $key_state_write (param i32 i32 i32 i32 i32) (result i32)))
  (import "latchkey_v1" "state_get" (func $state_get (param i32 i32 i32) (result i32)))
  (import "latchkey_v1" "state_set" (func $state_set (param i32 i32 i32) (result i32)))
  (import "latchkey_v1" "call" (func $call (param i32 i32) (result i32)))
  (import "latchkey_v1" "call_type" (func $call_type (param i32) (result i32)))
  (import "latchkey_v1" "call_int" (func $call_int (param i32) (result i64)))
  (import "latchkey_v1" "call_double" (func $call_double (param i32) (result f64)))
  (import "latchkey_v1" "call_len" (func $call_len (param i32) (result i32)))
  (import "latchkey_v1" "call_elem" (func $call_elem (param i32 i32) (result i32)))
  (import "latchkey_v1" "call_bytes" (func $call_bytes (param i32 i32 i32) (result i32)))
  (import "latchkey_v1" "call_free" (func $call_free (param i32)))
  (import "latchkey_v1" "reply_null" (func $reply_null))
  (import "latchkey_v1" "reply_int" (func $reply_int (param i64)))
  (import "latchkey_v1" "reply_double" (func $reply_double (param f64)))
  (import "latchkey_v1" "reply_bool" (func $reply_bool (param i32)))
  (import "latchkey_v1" "reply_simple" (func $reply_simple (param i32 i32)))
  (import "latchkey_v1" "reply_bulk" (func $reply_bulk (param i32 i32)))
  (import "latchkey_v1" "reply_error" (func $reply_error (param i32 i32)))
  (import "latchkey_v1" "reply_bignum" (func $reply_bignum (param i32 i32)))
  (import "latchkey_v1" "reply_verbatim" (func $reply_verbatim (param i32 i32 i32)))
  (import "latchkey_v1" "reply_array" (func $reply_array (param i32)))
  (import "latchkey_v1" "reply_map" (func $reply_map (param i32)))
  (import "latchkey_v1" "reply_set" (func $reply_set (param i32)))
  (import "latchkey_v1" "reply_len" (func $reply_len (param i32)))
  (import "latchkey_v1" "block" (func $block (param i32 i32 i64 i64) (result i32)))
  (import "latchkey_v1" "wake" (func $wake (param i32 i32) (result i32)))
  (import "latchkey_v1" "bind_client" (func $bind_client (param i32 i32 i64) (result i32)))
  (import "latchkey_v1" "unbind_client" (func $unbind_client (param i32 i32) (result i32)))
  (import "latchkey_v1" "timer_set" (func $timer_set (param i64 i64) (result i64)))
  (import "latchkey_v1" "timer_cancel" (func $timer_cancel (param i64) (result i32)))
  (import "latchkey_v1" "notify" (func $notify (param i32 i32 i32 i32) (result i32)))
  (import "latchkey_v1" "now_ms" (func $now_ms (result i64)))
  (import "latchkey_v1" "fence" (func $fence (result i64)))
  (import "latchkey_v1" "random" (func $random (param i32 i32)))
  (import "latchkey_v1" "config_get" (func $config_get (param i32 i32 i32 i32) (result i32)))
  (import "latchkey_v1" "client" (func $client (param i32 i32 i32) (result i32)))
  (import "latchkey_v1" "log" (func $log (param i32 i32 i32)))
  (import "latchkey_v1" "cad_args" (func $cad_args (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  (global $n (mut i32) (i32.const 0))       ;; numbers in the list, at 8192
  (global $last (mut i64) (i64.const 0))
  (global $token (mut i64) (i64.const 0))
  (global $reason (mut i32) (i32.const 0))
  (data (i32.const 1024) "RPUSHabi:told")

  (data (i32.const 16384)
    "get\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "set\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "del\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "exists\00\00\00\00\00\00\00\00\00\00"
    "type\00\00\00\00\00\00\00\00\00\00\00\00"
    "incrby\00\00\00\00\00\00\00\00\00\00"
    "cas\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "cad\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "pttl\00\00\00\00\00\00\00\00\00\00\00\00"
    "pexpire\00\00\00\00\00\00\00\00\00"
    "key_state_get\00\00\00"
    "key_state_set\00\00\00"
    "key_state_read\00\00"
    "key_state_write\00"
    "state_get\00\00\00\00\00\00\00"
    "state_set\00\00\00\00\00\00\00"
    "call\00\00\00\00\00\00\00\00\00\00\00\00"
    "call_type\00\00\00\00\00\00\00"
    "call_int\00\00\00\00\00\00\00\00"
    "call_double\00\00\00\00\00"
    "call_len\00\00\00\00\00\00\00\00"
    "call_elem\00\00\00\00\00\00\00"
    "call_bytes\00\00\00\00\00\00"
    "call_free\00\00\00\00\00\00\00"
    "reply_null\00\00\00\00\00\00"
    "reply_int\00\00\00\00\00\00\00"
    "reply_double\00\00\00\00"
    "reply_bool\00\00\00\00\00\00"
    "reply_simple\00\00\00\00"
    "reply_bulk\00\00\00\00\00\00"
    "reply_error\00\00\00\00\00"
    "reply_bignum\00\00\00\00"
    "reply_verbatim\00\00"
    "reply_array\00\00\00\00\00"
    "reply_map\00\00\00\00\00\00\00"
    "reply_set\00\00\00\00\00\00\00"
    "reply_len\00\00\00\00\00\00\00"
    "block\00\00\00\00\00\00\00\00\00\00\00"
    "wake\00\00\00\00\00\00\00\00\00\00\00\00"
    "bind_client\00\00\00\00\00"
    "unbind_client\00\00\00"
    "timer_set\00\00\00\00\00\00\00"
    "timer_cancel\00\00\00\00"
    "notify\00\00\00\00\00\00\00\00\00\00"
    "now_ms\00\00\00\00\00\00\00\00\00\00"
    "fence\00\00\00\00\00\00\00\00\00\00\00"
    "random\00\00\00\00\00\00\00\00\00\00"
    "config_get\00\00\00\00\00\00"
    "client\00\00\00\00\00\00\00\00\00\00"
    "log\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "cad_args\00\00\00\00\00\00\00\00"
  )

  (func $p (param $i i32) (result i64) (i64.load (i32.add (i32.const 8192) (i32.shl (local.get $i) (i32.const 3)))))
  (func $w (param $i i32) (result i32) (i32.wrap_i64 (call $p (local.get $i))))
  (func $push (param $v i64)
    (i64.store (i32.add (i32.const 8192) (i32.shl (i32.and (global.get $n) (i32.const 63)) (i32.const 3))) (local.get $v))
    (global.set $n (i32.add (global.get $n) (i32.const 1))))

  (func $invoke (param $fn i32)
    (block $b50 (block $b49 (block $b48 (block $b47 (block $b46 (block $b45 (block $b44 (block $b43 (block $b42 (block $b41 (block $b40 (block $b39 (block $b38 (block $b37 (block $b36 (block $b35 (block $b34 (block $b33 (block $b32 (block $b31 (block $b30 (block $b29 (block $b28 (block $b27 (block $b26 (block $b25 (block $b24 (block $b23 (block $b22 (block $b21 (block $b20 (block $b19 (block $b18 (block $b17 (block $b16 (block $b15 (block $b14 (block $b13 (block $b12 (block $b11 (block $b10 (block $b9 (block $b8 (block $b7 (block $b6 (block $b5 (block $b4 (block $b3 (block $b2 (block $b1 (block $b0 (block $none
      (br_table $b0 $b1 $b2 $b3 $b4 $b5 $b6 $b7 $b8 $b9 $b10 $b11 $b12 $b13 $b14 $b15 $b16 $b17 $b18 $b19 $b20 $b21 $b22 $b23 $b24 $b25 $b26 $b27 $b28 $b29 $b30 $b31 $b32 $b33 $b34 $b35 $b36 $b37 $b38 $b39 $b40 $b41 $b42 $b43 $b44 $b45 $b46 $b47 $b48 $b49 $b50 $none (local.get $fn))
    ) (unreachable)
    ) (global.set $last (i64.extend_i32_s (call $get (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2)) (call $w (i32.const 3))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $set (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2)) (call $w (i32.const 3)) (call $w (i32.const 4)) (call $p (i32.const 5))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $del (call $w (i32.const 0)) (call $w (i32.const 1))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $exists (call $w (i32.const 0)) (call $w (i32.const 1))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $type (call $w (i32.const 0)) (call $w (i32.const 1))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $incrby (call $w (i32.const 0)) (call $w (i32.const 1)) (call $p (i32.const 2)) (call $w (i32.const 3))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $cas (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2)) (call $w (i32.const 3)) (call $w (i32.const 4)) (call $w (i32.const 5)) (call $p (i32.const 6))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $cad (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2)) (call $w (i32.const 3))))) (return)
    ) (global.set $last (call $pttl (call $w (i32.const 0)) (call $w (i32.const 1)))) (return)
    ) (global.set $last (i64.extend_i32_s (call $pexpire (call $w (i32.const 0)) (call $w (i32.const 1)) (call $p (i32.const 2))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $key_state_get (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2)) (call $w (i32.const 3)) (call $w (i32.const 4))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $key_state_set (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2)) (call $w (i32.const 3)) (call $w (i32.const 4)) (call $w (i32.const 5)) (call $p (i32.const 6))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $key_state_read (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2)) (call $w (i32.const 3)) (call $w (i32.const 4))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $key_state_write (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2)) (call $w (i32.const 3)) (call $w (i32.const 4))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $state_get (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $state_set (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $call (call $w (i32.const 0)) (call $w (i32.const 1))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $call_type (call $w (i32.const 0))))) (return)
    ) (global.set $last (call $call_int (call $w (i32.const 0)))) (return)
    ) (global.set $last (i64.trunc_f64_s (f64.mul (f64.const 1000) (call $call_double (call $w (i32.const 0)))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $call_len (call $w (i32.const 0))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $call_elem (call $w (i32.const 0)) (call $w (i32.const 1))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $call_bytes (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2))))) (return)
    ) (call $call_free (call $w (i32.const 0))) (return)
    ) (call $reply_null) (return)
    ) (call $reply_int (call $p (i32.const 0))) (return)
    ) (call $reply_double (f64.convert_i64_s (call $p (i32.const 0)))) (return)
    ) (call $reply_bool (call $w (i32.const 0))) (return)
    ) (call $reply_simple (call $w (i32.const 0)) (call $w (i32.const 1))) (return)
    ) (call $reply_bulk (call $w (i32.const 0)) (call $w (i32.const 1))) (return)
    ) (call $reply_error (call $w (i32.const 0)) (call $w (i32.const 1))) (return)
    ) (call $reply_bignum (call $w (i32.const 0)) (call $w (i32.const 1))) (return)
    ) (call $reply_verbatim (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2))) (return)
    ) (call $reply_array (call $w (i32.const 0))) (return)
    ) (call $reply_map (call $w (i32.const 0))) (return)
    ) (call $reply_set (call $w (i32.const 0))) (return)
    ) (call $reply_len (call $w (i32.const 0))) (return)
    ) (global.set $last (i64.extend_i32_s (call $block (call $w (i32.const 0)) (call $w (i32.const 1)) (call $p (i32.const 2)) (call $p (i32.const 3))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $wake (call $w (i32.const 0)) (call $w (i32.const 1))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $bind_client (call $w (i32.const 0)) (call $w (i32.const 1)) (call $p (i32.const 2))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $unbind_client (call $w (i32.const 0)) (call $w (i32.const 1))))) (return)
    ) (global.set $last (call $timer_set (call $p (i32.const 0)) (call $p (i32.const 1)))) (return)
    ) (global.set $last (i64.extend_i32_s (call $timer_cancel (call $p (i32.const 0))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $notify (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2)) (call $w (i32.const 3))))) (return)
    ) (global.set $last (call $now_ms)) (return)
    ) (global.set $last (call $fence)) (return)
    ) (call $random (call $w (i32.const 0)) (call $w (i32.const 1))) (return)
    ) (global.set $last (i64.extend_i32_s (call $config_get (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2)) (call $w (i32.const 3))))) (return)
    ) (global.set $last (i64.extend_i32_s (call $client (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2))))) (return)
    ) (call $log (call $w (i32.const 0)) (call $w (i32.const 1)) (call $w (i32.const 2))) (return)
    ) (global.set $last (i64.extend_i32_s (call $cad_args (call $w (i32.const 0)) (call $w (i32.const 1))))) (return)
  )

  ;; The number of the function whose name stands at a, n bytes long.
  (func $find (param $a i32) (param $n i32) (result i32)
    (local $i i32) (local $j i32)
    (if (i32.gt_u (local.get $n) (i32.const 15)) (then (unreachable)))
    (loop $each
      (local.set $j (i32.const 0))
      (block $differs
        (loop $byte
          (br_if $differs (i32.ne
            (i32.load8_u (i32.add (i32.add (i32.const 16384) (i32.shl (local.get $i) (i32.const 4))) (local.get $j)))
            (if (result i32) (i32.lt_u (local.get $j) (local.get $n))
              (then (i32.load8_u (i32.add (local.get $a) (local.get $j)))) (else (i32.const 0)))))
          (br_if $byte (i32.le_u (local.tee $j (i32.add (local.get $j) (i32.const 1))) (local.get $n))))
        (return (local.get $i)))
      (br_if $each (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 51))))
    (unreachable))

  ;; The decimal number at a, n bytes long.
  (func $number (param $a i32) (param $n i32) (result i64)
    (local $v i64) (local $minus i32) (local $end i32)
    (local.set $end (i32.add (local.get $a) (local.get $n)))
    (if (i32.eq (i32.load8_u (local.get $a)) (i32.const 45)) (then
      (local.set $minus (i32.const 1)) (local.set $a (i32.add (local.get $a) (i32.const 1)))))
    (block $done (loop $digit
      (br_if $done (i32.ge_u (local.get $a) (local.get $end)))
      (local.set $v (i64.add (i64.mul (local.get $v) (i64.const 10)) (i64.sub (i64.load8_u (local.get $a)) (i64.const 48))))
      (local.set $a (i32.add (local.get $a) (i32.const 1)))
      (br $digit)))
    (if (result i64) (local.get $minus) (then (i64.sub (i64.const 0) (local.get $v))) (else (local.get $v))))

  (func $ptr (param $frame i32) (param $i i64) (result i32)
    (i32.load offset=16 (i32.add (local.get $frame) (i32.shl (i32.wrap_i64 (local.get $i)) (i32.const 3)))))
  (func $len (param $frame i32) (param $i i64) (result i32)
    (i32.load offset=20 (i32.add (local.get $frame) (i32.shl (i32.wrap_i64 (local.get $i)) (i32.const 3)))))

  ;; Runs the words from $i on; with $skip, those behind the first bar.
  (func $run (param $i i32) (param $argc i32) (param $frame i32) (param $skip i32) (result i32)
    (local $a i32) (local $l i32) (local $c i32)
    (global.set $n (i32.const 0)) (global.set $last (i64.const 0))
    (memory.fill (i32.const 8192) (i32.const 0) (i32.const 512))
    (memory.fill (i32.const 4096) (i32.const 0) (i32.const 4096))
    (loop $next
      (if (i32.ge_u (local.get $i) (local.get $argc)) (then (return (i32.const 0))))
      (local.set $a (call $ptr (local.get $frame) (i64.extend_i32_u (local.get $i))))
      (local.set $l (call $len (local.get $frame) (i64.extend_i32_u (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (local.set $c (i32.load8_u (local.get $a)))
      (if (i32.eq (local.get $c) (i32.const 124)) (then ;; |
        (if (i32.eqz (local.get $skip)) (then (return (i32.const 0))))
        (local.set $skip (i32.const 0))
        (br $next)))
      (br_if $next (local.get $skip))
      (if (i32.eq (local.get $c) (i32.const 64)) (then ;; @
        (call $push (i64.extend_i32_u (call $ptr (local.get $frame) (call $number (i32.add (local.get $a) (i32.const 1)) (i32.sub (local.get $l) (i32.const 1))))))
        (br $next)))
      (if (i32.eq (local.get $c) (i32.const 35)) (then ;; #
        (call $push (i64.extend_i32_u (call $len (local.get $frame) (call $number (i32.add (local.get $a) (i32.const 1)) (i32.sub (local.get $l) (i32.const 1))))))
        (br $next)))
      (if (i32.eq (local.get $c) (i32.const 38)) (then (call $push (global.get $last)) (br $next))) ;; &
      (if (i32.eq (local.get $c) (i32.const 84)) (then (call $push (global.get $token)) (br $next))) ;; T
      (if (i32.eq (local.get $c) (i32.const 82)) (then (call $push (i64.extend_i32_u (global.get $reason))) (br $next))) ;; R
      (if (i32.eq (local.get $c) (i32.const 62)) (then ;; >
        (i64.store (i32.add (i32.const 4096) (i32.shl (i32.wrap_i64 (call $number (i32.add (local.get $a) (i32.const 1)) (i32.sub (local.get $l) (i32.const 1)))) (i32.const 3))) (global.get $last))
        (br $next)))
      (if (i32.eq (local.get $c) (i32.const 37)) (then ;; %
        (local.set $c (i32.const 0))
        (block $done (loop $word
          (br_if $done (i32.ge_u (local.get $c) (global.get $n)))
          (i32.store (i32.add (i32.const 4096) (i32.shl (local.get $c) (i32.const 2))) (call $w (local.get $c)))
          (local.set $c (i32.add (local.get $c) (i32.const 1)))
          (br $word)))
        (global.set $n (i32.const 0))
        (br $next)))
      (if (i32.eq (local.get $c) (i32.const 33)) (then ;; !
        (global.set $last (i64.const 0))
        (call $invoke (call $find (i32.add (local.get $a) (i32.const 1)) (i32.sub (local.get $l) (i32.const 1))))
        (global.set $n (i32.const 0))
        (memory.fill (i32.const 8192) (i32.const 0) (i32.const 512))
        (br $next)))
      (if (i32.eq (local.get $c) (i32.const 61)) (then (call $reply_int (global.get $last)) (br $next))) ;; =
      (if (i32.eq (local.get $c) (i32.const 94)) (then (return (i32.wrap_i64 (global.get $last))))) ;; ^
      (if (i32.eq (local.get $c) (i32.const 34)) (then ;; "
        (if (i32.eq (i32.load8_u offset=1 (local.get $a)) (i32.const 38))
          (then (call $reply_bulk (i32.const 4096) (i32.wrap_i64 (global.get $last))))
          (else (call $reply_bulk (i32.const 4096) (i32.wrap_i64 (call $number (i32.add (local.get $a) (i32.const 1)) (i32.sub (local.get $l) (i32.const 1)))))))
        (br $next)))
      (global.set $last (call $number (local.get $a) (local.get $l)))
      (call $push (global.get $last))
      (br $next))
    (i32.const 0))

  ;; RPUSH abi:told, and a letter with a digit.
  (func $tell (param $letter i32) (param $digit i64)
    (i32.store8 (i32.const 1040) (local.get $letter))
    (i64.store8 (i32.const 1041) (i64.add (i64.const 48) (local.get $digit)))
    (i32.store (i32.const 1056) (i32.const 1024)) (i32.store (i32.const 1060) (i32.const 5))
    (i32.store (i32.const 1064) (i32.const 1029)) (i32.store (i32.const 1068) (i32.const 8))
    (i32.store (i32.const 1072) (i32.const 1040)) (i32.store (i32.const 1076) (i32.const 2))
    (if (i32.lt_s (call $call (i32.const 1056) (i32.const 3)) (i32.const 1)) (then (unreachable))))

  (func (export "lk_abi") (result i32) (i32.const 1))
  (func (export "lk_init") (result i32) (i32.const 0))
  (func (export "lk_arena") (param $size i32) (result i32)
    (if (result i32) (i32.le_u (local.get $size) (i32.const 65536)) (then (i32.const 65536)) (else (i32.const 0))))
  (func (export "lk_command") (param $id i32) (param $argc i32) (param $frame i32) (result i32)
    (call $run (i32.add (i32.const 1) (local.get $id)) (local.get $argc) (local.get $frame) (i32.const 0)))
  (func (export "lk_wake") (param $token i64) (param $reason i32) (param $argc i32) (param $frame i32) (result i32)
    (global.set $token (local.get $token)) (global.set $reason (local.get $reason))
    (call $run (i32.const 2) (local.get $argc) (local.get $frame) (i32.const 1)))
  (func (export "lk_timer") (param $token i64) (result i32)
    (call $tell (i32.const 116) (local.get $token)) (i32.const 0))
  (func (export "lk_event") (param $class i32) (param $argc i32) (param $frame i32) (result i32)
    (call $tell (i32.const 101) (i64.extend_i32_u (local.get $class))) (i32.const 0))
  (func (export "lk_closed") (param $token i64) (param $argc i32) (param $frame i32) (result i32)
    (call $tell (i32.const 99) (local.get $token)) (i32.const 0)))
