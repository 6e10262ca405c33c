/* SPDX-License-Identifier: Apache-2.0
 * Helium (MVE, integer): products of two pixels and four channels, their requantization.
 *
 * Assembly here changes the predicate P0, which not every compiler can be told: files that use it
 * have no predicated intrinsics. */
#ifndef GM_MVE_H
#define GM_MVE_H

#include "gm_requant.h"

#if !defined(__ARM_FEATURE_MVE)
#error "this kernel needs a processor with MVE, such as -mcpu=cortex-m55"
#endif

#include <arm_mve.h>

/* Lanes of a vector of bytes. */
#define GM_MVE_LANES 16

/* Copy n bytes, 0 or more; only these are read and written. Returns the end of the copy. */
GM_INLINE int8_t *gm_mve_copy(int8_t *to, const int8_t *from, int32_t n)
{
    int8_t *at = to;
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[from]], #16\n\t"
                     "vstrb.8 q0, [%[at]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [from] "+r"(from), [at] "+r"(at)
                     : [n] "r"(n)
                     : "lr", "q0", "cc", "memory");
    return to + n;
}

/* Set n bytes, 0 or more. Returns their end. */
GM_INLINE int8_t *gm_mve_fill(int8_t *to, int32_t value, int32_t n)
{
    int8_t *at = to;
    __asm__ volatile("vdup.8 q0, %[value]\n\t"
                     "wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vstrb.8 q0, [%[at]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [at] "+r"(at)
                     : [n] "r"(n), [value] "r"(value)
                     : "lr", "q0", "cc", "memory");
    return to + n;
}

/* All channels of two pixels. The compiler of sums in registers that VMLADAV can name, all even
 * ones, would keep moving values: this is one block of assembly. */
typedef struct {
    const int8_t *x0; /* values of the two pixels */
    const int8_t *x1;
    int32_t first; /* the first 1 to 16 values, */
    int32_t whole; /* then so many times 16 */
    int8_t *y0;
    int8_t *y1;
    int32_t zero_point;
    int32_t shift;
    int32_t low;
    int32_t high;
    int32_t channels; /* what is left of them */
} gm_mve_pair_t;

/* w: per four channels the weights of `first` values and zeros, 16 of each channel; those of 16
 * values `whole` times; biases, multipliers. */
GM_INLINE void gm_mve_pair(gm_mve_pair_t *pair, const int8_t *w)
{
    register gm_mve_pair_t *run __asm__("r11") = pair;
    register const int8_t *weights __asm__("r5") = w;
    __asm__ volatile("ldrd r0, r2, [r11, #32]\n\t"
                     "vdup.16 q6, r0\n\t"
                     "vdup.16 q7, r2\n"
                     "3:\n\t"
                     "ldrd r1, r3, [r11]\n\t"
                     "ldrd r0, r9, [r11, #8]\n\t"
                     "vctp.8 r0\n\t"
                     "vpstt\n\t"
                     "vldrbt.u8 q4, [r1]\n\t"
                     "vldrbt.u8 q5, [r3]\n\t"
                     "vldrw.u32 q0, [r5], #16\n\t"
                     "vldrw.u32 q1, [r5], #16\n\t"
                     "vldrw.u32 q2, [r5], #16\n\t"
                     "vldrw.u32 q3, [r5], #16\n\t"
                     "adds r1, r1, r0\n\t"
                     "adds r3, r3, r0\n\t"
                     "vmladav.s8 r0, q4, q0\n\t"
                     "vmladav.s8 r8, q5, q0\n\t"
                     "vmladav.s8 r2, q4, q1\n\t"
                     "vmladav.s8 r10, q5, q1\n\t"
                     "vmladav.s8 r4, q4, q2\n\t"
                     "vmladav.s8 r12, q5, q2\n\t"
                     "vmladav.s8 r6, q4, q3\n\t"
                     "vmladav.s8 lr, q5, q3\n\t"
                     "cmp r9, #0\n\t"
                     "beq 2f\n"
                     "1:\n\t"
                     "vldrb.u8 q4, [r1], #16\n\t"
                     "vldrw.u32 q0, [r5], #16\n\t"
                     "vmladava.s8 r0, q4, q0\n\t"
                     "vldrb.u8 q5, [r3], #16\n\t"
                     "vmladava.s8 r8, q5, q0\n\t"
                     "vldrw.u32 q1, [r5], #16\n\t"
                     "vmladava.s8 r2, q4, q1\n\t"
                     "vldrw.u32 q2, [r5], #16\n\t"
                     "vmladava.s8 r10, q5, q1\n\t"
                     "vldrw.u32 q3, [r5], #16\n\t"
                     "vmladava.s8 r4, q4, q2\n\t"
                     "vmladava.s8 r12, q5, q2\n\t"
                     "vmladava.s8 r6, q4, q3\n\t"
                     "vmladava.s8 lr, q5, q3\n\t"
                     "subs r9, r9, #1\n\t"
                     "bne 1b\n"
                     "2:\n\t"
                     "vmov q0[2], q0[0], r0, r4\n\t"
                     "vmov q0[3], q0[1], r2, r6\n\t"
                     "vldrw.u32 q2, [r5], #16\n\t"
                     "vmov q1[2], q1[0], r8, r12\n\t"
                     "vmov q1[3], q1[1], r10, lr\n\t"
                     "ldrd r4, r6, [r11, #24]\n\t"
                     "vadd.i32 q0, q0, q2\n\t"
                     "vadd.i32 q1, q1, q2\n\t"
                     "vldrw.u32 q3, [r5], #16\n\t"
                     "vshl.s32 q0, r6\n\t"
                     "vshl.s32 q1, r6\n\t"
                     "ldr r8, [r11, #40]\n\t"
                     "vrmulh.s32 q0, q0, q3\n\t"
                     "vrmulh.s32 q1, q1, q3\n\t"
                     "ldrd r0, r2, [r11, #16]\n\t"
                     /* 16-bit lanes of both pixels by turns */
                     "vqmovnb.s32 q0, q0\n\t"
                     "vqmovnt.s32 q0, q1\n\t"
                     "vctp.32 r8\n\t"
                     "vqadd.s16 q0, q0, r4\n\t"
                     "vmax.s16 q0, q0, q6\n\t"
                     "vmin.s16 q0, q0, q7\n\t"
                     "vshr.u32 q1, q0, #16\n\t"
                     "vpstt\n\t"
                     "vstrbt.32 q1, [r2], #4\n\t"
                     "vstrbt.32 q0, [r0], #4\n\t"
                     "strd r0, r2, [r11, #16]\n\t"
                     "subs r8, r8, #4\n\t"
                     "str r8, [r11, #40]\n\t"
                     "bgt 3b"
                     : "+r"(weights)
                     : "r"(run)
                     : "r0", "r1", "r2", "r3", "r4", "r6", "r8", "r9", "r10", "r12", "lr", "q0",
                       "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");
}

/* All channels of one pixel, with the same weights; x1 and y1 are not used. */
GM_INLINE void gm_mve_one(gm_mve_pair_t *pair, const int8_t *w)
{
    register gm_mve_pair_t *run __asm__("r11") = pair;
    register const int8_t *weights __asm__("r5") = w;
    __asm__ volatile("ldrd r0, r2, [r11, #32]\n\t"
                     "vdup.16 q6, r0\n\t"
                     "vdup.16 q7, r2\n"
                     "3:\n\t"
                     "ldr r1, [r11]\n\t"
                     "ldrd r0, r9, [r11, #8]\n\t"
                     "vctp.8 r0\n\t"
                     "vpst\n\t"
                     "vldrbt.u8 q4, [r1]\n\t"
                     "vldrw.u32 q0, [r5], #16\n\t"
                     "vldrw.u32 q1, [r5], #16\n\t"
                     "vldrw.u32 q2, [r5], #16\n\t"
                     "vldrw.u32 q3, [r5], #16\n\t"
                     "adds r1, r1, r0\n\t"
                     "vmladav.s8 r0, q4, q0\n\t"
                     "vmladav.s8 r2, q4, q1\n\t"
                     "vmladav.s8 r4, q4, q2\n\t"
                     "vmladav.s8 r6, q4, q3\n\t"
                     "wls lr, r9, 2f\n"
                     "1:\n\t"
                     "vldrb.u8 q4, [r1], #16\n\t"
                     "vldrw.u32 q0, [r5], #16\n\t"
                     "vmladava.s8 r0, q4, q0\n\t"
                     "vldrw.u32 q1, [r5], #16\n\t"
                     "vmladava.s8 r2, q4, q1\n\t"
                     "vldrw.u32 q2, [r5], #16\n\t"
                     "vldrw.u32 q3, [r5], #16\n\t"
                     "vmladava.s8 r4, q4, q2\n\t"
                     "vmladava.s8 r6, q4, q3\n\t"
                     "le lr, 1b\n"
                     "2:\n\t"
                     "vmov q0[2], q0[0], r0, r4\n\t"
                     "vmov q0[3], q0[1], r2, r6\n\t"
                     "vldrw.u32 q2, [r5], #16\n\t"
                     "ldrd r4, r6, [r11, #24]\n\t"
                     "vadd.i32 q0, q0, q2\n\t"
                     "vldrw.u32 q3, [r5], #16\n\t"
                     "vshl.s32 q0, r6\n\t"
                     "ldr r8, [r11, #40]\n\t"
                     "vrmulh.s32 q0, q0, q3\n\t"
                     "ldr r0, [r11, #16]\n\t"
                     "vqmovnb.s32 q0, q0\n\t"
                     "vctp.32 r8\n\t"
                     "vqadd.s16 q0, q0, r4\n\t"
                     "vmax.s16 q0, q0, q6\n\t"
                     "vmin.s16 q0, q0, q7\n\t"
                     "vpst\n\t"
                     "vstrbt.32 q0, [r0], #4\n\t"
                     "str r0, [r11, #16]\n\t"
                     "subs r8, r8, #4\n\t"
                     "str r8, [r11, #40]\n\t"
                     "bgt 3b"
                     : "+r"(weights)
                     : "r"(run)
                     : "r0", "r1", "r2", "r4", "r6", "r8", "r9", "lr", "q0", "q1", "q2", "q3", "q4",
                       "q6", "q7", "cc", "memory");
}

#endif
