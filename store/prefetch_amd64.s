#include "textflag.h"

// func prefetch(at *[touchMost]unsafe.Pointer, n int, also uintptr)
TEXT ·prefetch(SB), NOSPLIT, $0-24
	MOVQ at+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ also+16(FP), DX
	LEAQ (SI)(CX*8), DI
next:
	CMPQ SI, DI
	JAE  done
	MOVQ (SI), AX
	PREFETCHT0 (AX)
	PREFETCHT0 (AX)(DX*1)
	ADDQ $8, SI
	JMP  next
done:
	RET
