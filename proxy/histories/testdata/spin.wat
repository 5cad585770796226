;; A plugin that never ends by itself. SPIN.COMPUTE key computes; SPIN.CALL key
;; asks the host whether its key exists, again and again.
;; Assembled by: wat2wasm spin.wat -o bare.wasm && latchkey plugin pack bare.wasm spin.json -o spin.wasm
(module
	(import "latchkey_v1" "exists" (func $exists (param i32 i32) (result i32)))
	(memory (export "memory") 1)
	(func (export "lk_abi") (result i32) (i32.const 1))
	(func (export "lk_init") (result i32) (i32.const 0))
	(func (export "lk_arena") (param $size i32) (result i32) (i32.const 1024))
	(func (export "lk_command") (param $id i32) (param $argc i32) (param $frame i32) (result i32)
		(if (local.get $id) (then
			(loop $l
				(drop (call $exists
					(i32.load offset=24 (local.get $frame)) (i32.load offset=28 (local.get $frame))))
				(br $l))))
		(loop $l (br $l))
		(i32.const 0)))
