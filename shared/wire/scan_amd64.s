//go:build !purego

#include "textflag.h"

// What a string stops at: a quote, a backslash, and what is not above 0x1f.
DATA quote<>+0(SB)/1, $0x22
GLOBL quote<>(SB), RODATA|NOPTR, $1
DATA backslash<>+0(SB)/1, $0x5c
GLOBL backslash<>(SB), RODATA|NOPTR, $1
DATA control<>+0(SB)/1, $0x1f
GLOBL control<>(SB), RODATA|NOPTR, $1

// func skipTextAVX2(p *byte, n int) int
//
// 64 bytes at a time become a mask of those that stop a string. Escapes of two
// bytes are taken out of the mask, also one whose second byte is the first of
// the next 64. Nothing outside of the n bytes is read.
TEXT ·skipTextAVX2(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	LEAQ ·shortEscape(SB), DI
	VPBROADCASTB quote<>(SB), Y0
	VPBROADCASTB backslash<>(SB), Y1
	VPBROADCASTB control<>(SB), Y2
	XORQ AX, AX        // index of the 64 bytes
	XORQ R9, R9        // 1: the first of them ends an escape
	LEAQ -64(CX), R13  // the last index of 64 bytes
	JMP  more

block:
	VMOVDQU (SI)(AX*1), Y3
	VMOVDQU 32(SI)(AX*1), Y7
	VPMINUB Y3, Y2, Y4
	VPCMPEQB Y3, Y4, Y4
	VPCMPEQB Y3, Y0, Y5
	VPCMPEQB Y3, Y1, Y6
	VPOR Y5, Y4, Y4
	VPOR Y6, Y4, Y4
	VPMINUB Y7, Y2, Y8
	VPCMPEQB Y7, Y8, Y8
	VPCMPEQB Y7, Y0, Y9
	VPCMPEQB Y7, Y1, Y10
	VPOR Y9, Y8, Y8
	VPOR Y10, Y8, Y8
	VPMOVMSKB Y4, DX
	VPMOVMSKB Y8, BX
	SHLQ $32, BX
	ORQ  BX, DX
	NOTQ R9
	ANDQ R9, DX        // all ones, or all but the first
	MOVL $0, R9
	TESTQ DX, DX
	JNZ  stop

next:
	ADDQ $64, AX

more:
	CMPQ AX, R13
	JLE  block
	ADDQ R9, AX
	JMP  done

stop:
	BSFQ DX, R8
	LEAQ (AX)(R8*1), R10
	CMPB (SI)(R10*1), $0x5c
	JNE  found
	INCQ R10
	CMPQ R10, CX
	JGE  cut
	MOVBLZX (SI)(R10*1), R11
	CMPB (DI)(R11*1), $0
	JEQ  cut
	BTRQ R8, DX
	INCQ R8
	BTRQ R8, DX        // of 64 it is bit 0, which is past
	CMPQ R8, $64
	SETEQ R9
	TESTQ DX, DX
	JNZ  stop
	JMP  next

cut: // at the backslash of another escape, or of none
	DECQ R10

found:
	MOVQ R10, AX

done:
	VZEROUPPER
	MOVQ AX, ret+16(FP)
	RET
