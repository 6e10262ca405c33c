/* SPDX-License-Identifier: Apache-2.0
 * Sums of products in registers of Arm's single-precision FPU. Each product is rounded before it is
 * added, in the order of the C kernels: the results are the same, to the bit. */
#ifndef GM_FPU_H
#define GM_FPU_H

#include "gm_clamp_f32.h"
#include "gm_types.h"

/* Four pixels times four channels. */
typedef struct {
    const float *x[4]; /* values of each pixel */
    const float *w;    /* for each value the weights of four channels */
    int32_t count;     /* values, 1 or more */
    float sum[16];     /* of pixel 0, channels 0 to 3, then of pixel 1; biases before */
} gm_fpu_block_t;

/* Eight channels of one pixel. */
typedef struct {
    const float **taps; /* where the values of each tap lie; they move on by eight */
    const float *w;     /* eight weights for each tap; moves on, too */
    int32_t count;      /* taps, 1 or more */
    float sum[8];       /* biases before */
} gm_fpu_taps_t;

#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && !defined(GM_NO_ASM)

/* clang-format off */
__attribute__((naked, noinline, unused)) static void
gm_fpu_block(gm_fpu_block_t *run __attribute__((unused)))
{
    __asm__ volatile("push {r4, r5, r6, lr}\n\t"
                     "vpush {s16-s31}\n\t"
                     "add r6, r0, #24\n\t"
                     "vldm r6, {s0-s15}\n\t"
                     "ldm r0, {r1-r5, r12}\n"
                     "1:\n\t"
                     "vldmia r5!, {s16-s19}\n\t"
                     "vldmia r1!, {s20}\n\t"
                     "vldmia r2!, {s21}\n\t"
                     "vldmia r3!, {s22}\n\t"
                     "vldmia r4!, {s23}\n\t"
                     "vmul.f32 s24, s16, s20\n\t"
                     "vmul.f32 s25, s17, s20\n\t"
                     "vmul.f32 s26, s18, s20\n\t"
                     "vmul.f32 s27, s19, s20\n\t"
                     "vmul.f32 s28, s16, s21\n\t"
                     "vmul.f32 s29, s17, s21\n\t"
                     "vmul.f32 s30, s18, s21\n\t"
                     "vmul.f32 s31, s19, s21\n\t"
                     "vadd.f32 s0, s0, s24\n\t"
                     "vadd.f32 s1, s1, s25\n\t"
                     "vadd.f32 s2, s2, s26\n\t"
                     "vadd.f32 s3, s3, s27\n\t"
                     "vadd.f32 s4, s4, s28\n\t"
                     "vadd.f32 s5, s5, s29\n\t"
                     "vadd.f32 s6, s6, s30\n\t"
                     "vadd.f32 s7, s7, s31\n\t"
                     "vmul.f32 s24, s16, s22\n\t"
                     "vmul.f32 s25, s17, s22\n\t"
                     "vmul.f32 s26, s18, s22\n\t"
                     "vmul.f32 s27, s19, s22\n\t"
                     "vmul.f32 s28, s16, s23\n\t"
                     "vmul.f32 s29, s17, s23\n\t"
                     "vmul.f32 s30, s18, s23\n\t"
                     "vmul.f32 s31, s19, s23\n\t"
                     "vadd.f32 s8, s8, s24\n\t"
                     "vadd.f32 s9, s9, s25\n\t"
                     "vadd.f32 s10, s10, s26\n\t"
                     "vadd.f32 s11, s11, s27\n\t"
                     "vadd.f32 s12, s12, s28\n\t"
                     "vadd.f32 s13, s13, s29\n\t"
                     "vadd.f32 s14, s14, s30\n\t"
                     "vadd.f32 s15, s15, s31\n\t"
                     "subs r12, r12, #1\n\t"
                     "bne 1b\n\t"
                     "vstm r6, {s0-s15}\n\t"
                     "vpop {s16-s31}\n\t"
                     "pop {r4, r5, r6, pc}"
                     ::: "memory");
}

__attribute__((naked, noinline, unused)) static void
gm_fpu_taps(gm_fpu_taps_t *run __attribute__((unused)))
{
    __asm__ volatile("push {r4, lr}\n\t"
                     "vpush {s16-s23}\n\t"
                     "ldm r0, {r1, r2, r3}\n\t"
                     "add r4, r0, #12\n\t"
                     "vldm r4, {s0-s7}\n"
                     "1:\n\t"
                     "ldr r12, [r1]\n\t"
                     "vldmia r2!, {s16-s23}\n\t"
                     "vldmia r12!, {s8-s15}\n\t"
                     "str r12, [r1], #4\n\t"
                     "vmul.f32 s8, s8, s16\n\t"
                     "vmul.f32 s9, s9, s17\n\t"
                     "vmul.f32 s10, s10, s18\n\t"
                     "vmul.f32 s11, s11, s19\n\t"
                     "vmul.f32 s12, s12, s20\n\t"
                     "vmul.f32 s13, s13, s21\n\t"
                     "vmul.f32 s14, s14, s22\n\t"
                     "vmul.f32 s15, s15, s23\n\t"
                     "vadd.f32 s0, s0, s8\n\t"
                     "vadd.f32 s1, s1, s9\n\t"
                     "vadd.f32 s2, s2, s10\n\t"
                     "vadd.f32 s3, s3, s11\n\t"
                     "vadd.f32 s4, s4, s12\n\t"
                     "vadd.f32 s5, s5, s13\n\t"
                     "vadd.f32 s6, s6, s14\n\t"
                     "vadd.f32 s7, s7, s15\n\t"
                     "subs r3, r3, #1\n\t"
                     "bne 1b\n\t"
                     "vstm r4, {s0-s7}\n\t"
                     "str r2, [r0, #4]\n\t"
                     "vpop {s16-s23}\n\t"
                     "pop {r4, pc}"
                     ::: "memory");
}
/* clang-format on */

#else

GM_INLINE void gm_fpu_block(gm_fpu_block_t *run)
{
    for (int32_t k = 0; k < run->count; k++) {
        for (int32_t n = 0; n < 16; n++) {
            run->sum[n] += run->x[n / 4][k] * run->w[4 * k + n % 4];
        }
    }
}

GM_INLINE void gm_fpu_taps(gm_fpu_taps_t *run)
{
    for (int32_t t = 0; t < run->count; t++) {
        for (int32_t c = 0; c < 8; c++) {
            run->sum[c] += run->taps[t][c] * run->w[c];
        }
        run->taps[t] += 8;
        run->w += 8;
    }
}

#endif

#endif
