#include "textflag.h"

// func prefetch(at *[touchMost]unsafe.Pointer, n int, also uintptr)
TEXT ·prefetch(SB), NOSPLIT, $0-24
	MOVD at+0(FP), R0
	MOVD n+8(FP), R1
	MOVD also+16(FP), R2
next:
	CBZ  R1, done
	MOVD (R0), R3
	ADD  R2, R3, R4
	PRFM (R3), PLDL1KEEP
	PRFM (R4), PLDL1KEEP
	ADD  $8, R0
	SUB  $1, R1
	JMP  next
done:
	RET
