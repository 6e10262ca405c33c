/* SPDX-License-Identifier: Apache-2.0
 * Products for Armv6-M: 16 bits of a word of weights hold those of two channels, a + 256 b, so that
 * one sign extension gives each factor. With A = sum x a and S = sum x (a + 256 b), B is
 * (S - A) / 256, which is exact where |B| < 2^23. Values of x are bytes, or 32 bits wide, which is
 * quicker where they serve many channels. */
#ifndef GM_HALFWORD_H
#define GM_HALFWORD_H

#include "gm_requant.h"

typedef struct {
    const void *x; /* values of one pixel, a multiple of four; zeros at their end */
    const void *x_end;
    int8_t *y;
    int32_t zero_point;
    int32_t low;
    int32_t high;
    const uint32_t *w_end;
} gm_halfword_run_t;

#if defined(__GNUC__) && defined(__thumb__) && !defined(GM_NO_ASM)

/* clang-format off */

/* r2: value of x; `word`: weights; r8 to r11: A, S of two pairs of channels. */
#define GM_HALFWORD_STEP(x, word)                                                                  \
    "sxth r6, " word "\n\tsxtb r7, " word "\n\tasrs " word ", " word ", #16\n\t"                   \
    "muls r6, " x ", r6\n\tadd r9, r6\n\tmuls r7, " x ", r7\n\tadd r8, r7\n\t"                     \
    "sxtb r7, " word "\n\tmuls " word ", " x ", " word "\n\tadd r11, " word "\n\t"                 \
    "muls r7, " x ", r7\n\tadd r10, r7\n\t"
#define GM_HALFWORD_WIDE                                                                           \
    "ldmia r0!, {r2, r3}\n\tldmia r1!, {r4, r5}\n\t"                                               \
    GM_HALFWORD_STEP("r2", "r4") GM_HALFWORD_STEP("r3", "r5")
#define GM_HALFWORD_BYTES                                                                          \
    "ldmia r1!, {r4, r5}\n\tldrsb r2, [r0, r3]\n\tadds r3, r3, #1\n\t" GM_HALFWORD_STEP("r2", "r4") \
    "ldrsb r2, [r0, r3]\n\tadds r3, r3, #1\n\t" GM_HALFWORD_STEP("r2", "r5")

/* y[n] from the sum r0: (r0 * multiplier + 2^31) >> 32 by products of 16 bits, where the last shift
 * leaves what rounds up in the carry. lr: zero point, r2: low, r12: high, r3: y. */
#define GM_HALFWORD_REQUANT(n)                                                                     \
    "ldmia r1!, {r4}\n\tuxth r5, r4\n\tlsrs r4, r4, #16\n\tuxth r6, r0\n\tasrs r0, r0, #16\n\t"    \
    "movs r7, r6\n\tmuls r7, r5, r7\n\tlsrs r7, r7, #16\n\tmuls r5, r0, r5\n\tadds r5, r5, r7\n\t" \
    "muls r0, r4, r0\n\tmuls r6, r4, r6\n\tuxth r7, r5\n\tadds r6, r6, r7\n\tasrs r5, r5, #16\n\t" \
    "adds r0, r0, r5\n\tlsrs r6, r6, #16\n\tadcs r0, r0, r6\n\tadd r0, lr\n\t"                     \
    "cmp r0, r2\n\tbge 4f\n\tmov r0, r2\n\t4:\n\tcmp r0, r12\n\tble 5f\n\tmov r0, r12\n\t5:\n\t"   \
    "strb r0, [r3, #" #n "]\n\t"

/* All channels of one pixel, four at a time. */
#define GM_HALFWORD_FUNCTION(start, loop)                                                          \
    ".syntax unified\n\t"                                                                          \
    "push {r4-r7, lr}\n\tmov r4, r8\n\tmov r5, r9\n\tmov r6, r10\n\tmov r7, r11\n\t"              \
    "push {r0, r4-r7}\n\tldr r2, [r0, #12]\n\tmov lr, r2\n"                                        \
    "1:\n\t"                                                                                       \
    "ldmia r1!, {r4-r7}\n\tmov r8, r4\n\tmov r9, r5\n\tmov r10, r6\n\tmov r11, r7\n\t"            \
    "ldr r7, [sp]\n\tldr r0, [r7]\n\tldr r2, [r7, #4]\n\t" start "\n"                             \
    "2:\n\t" loop "\n\tbne 2b\n\t"                                                                \
    /* B of both pairs, bounds, y */                                                               \
    "mov r0, r8\n\tmov r5, r9\n\tsubs r5, r5, r0\n\tasrs r5, r5, #8\n\tmov r9, r5\n\t"            \
    "mov r4, r10\n\tmov r5, r11\n\tsubs r5, r5, r4\n\tasrs r5, r5, #8\n\tmov r11, r5\n\t"         \
    "ldr r7, [sp]\n\tldr r3, [r7, #8]\n\tldr r2, [r7, #20]\n\tmov r12, r2\n\tldr r2, [r7, #16]\n\t"\
    GM_HALFWORD_REQUANT(0) "mov r0, r9\n\t" GM_HALFWORD_REQUANT(1)                                 \
    "mov r0, r10\n\t" GM_HALFWORD_REQUANT(2) "mov r0, r11\n\t" GM_HALFWORD_REQUANT(3)              \
    "adds r3, r3, #4\n\tldr r7, [sp]\n\tstr r3, [r7, #8]\n\tldr r2, [r7, #24]\n\t"                \
    "cmp r1, r2\n\tbeq 3f\n\tb 1b\n"                                                               \
    "3:\n\t"                                                                                       \
    "pop {r0, r4-r7}\n\tmov r8, r4\n\tmov r9, r5\n\tmov r10, r6\n\tmov r11, r7\n\t"               \
    "mov r0, r1\n\tpop {r4-r7, pc}"
#define GM_NAKED __attribute__((naked, noinline, unused)) static const uint32_t *
#define GM_UNUSED __attribute__((unused))

/* w: per four channels a0, a0 + 256 b0, a1, a1 + 256 b1 of the biases, words of weights,
 * multipliers. Returns w after that. */
GM_NAKED gm_halfword_wide(gm_halfword_run_t *run GM_UNUSED, const uint32_t *w GM_UNUSED)
{
    __asm__ volatile(
        GM_HALFWORD_FUNCTION("mov r12, r2", GM_HALFWORD_WIDE GM_HALFWORD_WIDE "cmp r0, r12")
        ::: "memory");
}

GM_NAKED gm_halfword_bytes(gm_halfword_run_t *run GM_UNUSED, const uint32_t *w GM_UNUSED)
{
    __asm__ volatile(
        GM_HALFWORD_FUNCTION("subs r3, r0, r2\n\tmov r0, r2",
                             GM_HALFWORD_BYTES GM_HALFWORD_BYTES "cmp r3, #0")
        ::: "memory");
}

/* clang-format on */

#else

GM_INLINE const uint32_t *gm_halfword_pixel(gm_halfword_run_t *run, const uint32_t *w, int32_t wide)
{
    const int32_t *const words = (const int32_t *)run->x;
    const int8_t *const bytes = (const int8_t *)run->x;
    const int32_t size = (int32_t)((const int8_t *)run->x_end - bytes);
    const int32_t steps = wide ? size / 4 : size;
    while (w != run->w_end) {
        uint32_t sum[4] = {w[0], w[1], w[2], w[3]};
        w += 4;
        for (int32_t n = 0; n < steps; n++, w++) {
            const int32_t x = wide ? words[n] : bytes[n];
            const int32_t both[2] = {(int16_t)(*w & 0xFFFFU), (int16_t)(*w >> 16)};
            for (int32_t k = 0; k < 2; k++) {
                sum[2 * k] += (uint32_t)(x * (int8_t)(both[k] & 0xFF));
                sum[2 * k + 1] += (uint32_t)(x * both[k]);
            }
        }
        for (int32_t k = 0; k < 4; k++) {
            const int32_t acc = k % 2 == 0 ? (int32_t)sum[k] : (int32_t)(sum[k] - sum[k - 1]) >> 8;
            run->y[k] = gm_requant_s8(acc, (int32_t)w[k], 0, run->zero_point, run->low, run->high);
        }
        run->y += 4;
        w += 4;
    }
    return w;
}

GM_INLINE const uint32_t *gm_halfword_wide(gm_halfword_run_t *run, const uint32_t *w)
{
    return gm_halfword_pixel(run, w, 1);
}

GM_INLINE const uint32_t *gm_halfword_bytes(gm_halfword_run_t *run, const uint32_t *w)
{
    return gm_halfword_pixel(run, w, 0);
}

#endif

/* `channels` of one pixel, whatever is left of the last four (wide is a constant at every call);
 * `group` words of w per four. */
GM_INLINE void gm_halfword_channels(gm_halfword_run_t *run, int8_t *y, const uint32_t *w,
                                    int32_t channels, int32_t group, int32_t wide)
{
    run->y = y;
    run->w_end = w + channels / 4 * group;
    if (channels >= 4) {
        w = wide ? gm_halfword_wide(run, w) : gm_halfword_bytes(run, w);
    }
    if (channels % 4 != 0) {
        int8_t last[4];
        run->y = last;
        run->w_end = w + group;
        (void)(wide ? gm_halfword_wide(run, w) : gm_halfword_bytes(run, w));
        for (int32_t k = 0; k < channels % 4; k++) {
            y[channels / 4 * 4 + k] = last[k];
        }
    }
}

/* Append n values of x, or n times `fill` where x is NULL, as words; returns their end. */
GM_INLINE int32_t *gm_halfword_expand(int32_t *to, const int8_t *x, int32_t fill, int32_t n)
{
    int32_t k = 0;
    if (x == NULL) {
        for (; k < n; k++) {
            to[k] = fill;
        }
        return to + n;
    }
    for (; k + 4 <= n; k += 4) {
        to[k] = x[k];
        to[k + 1] = x[k + 1];
        to[k + 2] = x[k + 2];
        to[k + 3] = x[k + 3];
    }
    for (; k < n; k++) {
        to[k] = x[k];
    }
    return to + n;
}

#endif
