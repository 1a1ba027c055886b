//go:build !purego

#include "textflag.h"

// func skipTextNEON(p *byte, n int) int
//
// 64 bytes at a time are asked whether one of them stops a string: a quote, a
// backslash, or what is not above 0x1f. Inverting the second bit of each makes
// quotes and controls one range, 0 to 0x20, and a backslash 0x5e. Only where one
// stops are they made a mask of those that do. Escapes of two bytes are taken
// out of the mask, also one whose second byte is the first of the next 64.
// Nothing outside of the n bytes is read.
//
// It is written for few instructions: counted in an emulator, a string of 4 KiB
// takes 0.43 of them a byte, and the loop over words 2.5; one of 40 bytes takes
// as many either way. Its speed on a processor has not been measured.
TEXT ·skipTextNEON(SB), NOSPLIT, $0-24
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1
	ADD  R0, R1, R2             // end of the bytes
	MOVD $·shortEscape(SB), R3
	MOVD R0, R4                 // at the 64 bytes
	MOVD ZR, R5                 // 1: the first of them ends an escape
	VMOVI $0x02, V0.B16
	VMOVI $0x5e, V1.B16
	VMOVI $0x20, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	SUBS $64, R1, R1            // how many bytes are behind them
	BMI  done

block:
	VLD1 (R4), [V4.B16, V5.B16, V6.B16, V7.B16]
	VEOR V0.B16, V4.B16, V4.B16
	VEOR V0.B16, V5.B16, V5.B16
	VEOR V0.B16, V6.B16, V6.B16
	VEOR V0.B16, V7.B16, V7.B16
	VCMEQ V1.B16, V4.B16, V16.B16
	VCMEQ V1.B16, V5.B16, V17.B16
	VCMEQ V1.B16, V6.B16, V18.B16
	VCMEQ V1.B16, V7.B16, V19.B16
	VBIT V16.B16, V3.B16, V4.B16 // backslashes become 0
	VBIT V17.B16, V3.B16, V5.B16
	VBIT V18.B16, V3.B16, V6.B16
	VBIT V19.B16, V3.B16, V7.B16
	VUMIN V5.B16, V4.B16, V20.B16
	VUMIN V7.B16, V6.B16, V21.B16
	VUMIN V21.B16, V20.B16, V20.B16
	VUMIN V2.B16, V20.B16, V21.B16
	VCMEQ V20.B16, V21.B16, V22.B16
	VADDP V22.D2, V22.D2, V22.D2 // of bytes 0 and 0xff: 0 only of nothing but 0
	VMOV V22.D[0], R6
	CBNZ R6, stop
	MOVD ZR, R5

next:
	ADD  $64, R4
	SUBS $64, R1, R1
	BPL  block
	ADD  R5, R4
	B    done

stop:
	VUMIN V2.B16, V4.B16, V20.B16
	VUMIN V2.B16, V5.B16, V21.B16
	VUMIN V2.B16, V6.B16, V22.B16
	VUMIN V2.B16, V7.B16, V23.B16
	VCMEQ V4.B16, V20.B16, V20.B16
	VCMEQ V5.B16, V21.B16, V21.B16
	VCMEQ V6.B16, V22.B16, V22.B16
	VCMEQ V7.B16, V23.B16, V23.B16
	MOVD $0x8040201008040201, R6 // the bit of each byte of eight
	VMOV R6, V24.D2
	VAND V24.B16, V20.B16, V20.B16
	VAND V24.B16, V21.B16, V21.B16
	VAND V24.B16, V22.B16, V22.B16
	VAND V24.B16, V23.B16, V23.B16
	VADDP V21.B16, V20.B16, V20.B16
	VADDP V23.B16, V22.B16, V22.B16
	VADDP V22.B16, V20.B16, V20.B16
	VADDP V20.B16, V20.B16, V20.B16
	VMOV V20.D[0], R6
	BIC  R5, R6, R6             // all of it, or all but the first
	MOVD ZR, R5
	CBZ  R6, next
	MOVD $3, R7                 // both bytes of an escape

each:
	RBIT R6, R8
	CLZ  R8, R8
	ADD  R8, R4, R9
	MOVBU (R9), R10
	CMP  $0x5c, R10
	BNE  found
	ADD  $1, R9, R10
	CMP  R2, R10
	BHS  found
	MOVBU (R10), R10
	MOVBU (R3)(R10), R10
	CBZ  R10, found             // of another escape, or of none
	LSL  R8, R7, R10
	BIC  R10, R6, R6
	CMP  $63, R8
	CSET EQ, R5
	CBNZ R6, each
	B    next

found:
	MOVD R9, R4

done:
	SUB  R0, R4, R0
	MOVD R0, ret+16(FP)
	RET
