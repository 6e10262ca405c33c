/* SPDX-License-Identifier: Apache-2.0
 * Products of int16 activations with int8 weights, for the DSP extension of Armv7E-M and Armv8-M.
 * The windows of two pixels lie interleaved, two values of each by turns; a word holds two weights
 * of two channels, which SXTB16 brings to lanes: one multiply-accumulate does two values. The loop
 * is assembly, because compilers spill here; GM_NO_ASM, or another compiler, takes C. */
#ifndef GM_PAIR_PRODUCT_H
#define GM_PAIR_PRODUCT_H

#include "gm_raw_product.h"

/* One call: two pixels times all channels of a group. A step is two values of each pixel. */
typedef struct {
    const int16_t *x;      /* the windows of both pixels */
    int32_t block_bytes;   /* of x in blocks of four steps */
    int32_t bytes;         /* of x in all, of an even number of steps */
    const int32_t *stream; /* per four channels: biases, weights, multipliers */
    int16_t *y;
    int32_t second; /* bytes from a pixel of y to the next; 0: there is one pixel only */
    int32_t zero_point;
    uint32_t low; /* clamp of y, twice */
    uint32_t high;
    int32_t groups; /* of four channels, 1 or more; counted down */
    int32_t shift;  /* left shift of the sums */
    int32_t last;   /* channels of the last group, 1..4 */
} gm_pair_run_t;

GM_INLINE int32_t gm_multiply_two(uint32_t a, uint32_t b, int32_t acc)
{
#if GM_ASM
    int32_t sum;
    __asm__("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(a), "r"(b), "r"(acc));
    return sum;
#else
    return __smlad((int16x2_t)a, (int16x2_t)b, acc);
#endif
}

/* The requantized sum, not yet clamped. */
GM_INLINE int32_t gm_requant_dsp(int32_t acc, int32_t multiplier, int32_t shift, int32_t zero_point)
{
    const int32_t wide = acc * (INT32_C(1) << shift);
#if GM_ASM
    int32_t scaled;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(scaled) : "r"(wide), "r"(multiplier), "r"(zero_point));
    return scaled;
#else
    return gm_mulh_round_s32(wide, multiplier) + zero_point;
#endif
}

/* a and b in a word, each between the halves of low and high. */
GM_INLINE uint32_t gm_clamp_two(int32_t a, int32_t b, uint32_t low, uint32_t high)
{
#if GM_ASM
    uint32_t both;
    uint32_t free;
    __asm__("ssat %0, #16, %2\n\tssat %1, #16, %3\n\tpkhbt %0, %0, %1, lsl #16\n\t"
            "ssub16 %1, %0, %4\n\tsel %0, %0, %4\n\tssub16 %1, %5, %0\n\tsel %0, %0, %5"
            : "=&r"(both), "=&r"(free)
            : "r"(a), "r"(b), "r"(low), "r"(high));
    return both;
#else
    const int32_t least = (int16_t)(low & 0xFFFFU);
    const int32_t most = (int16_t)(high & 0xFFFFU);
    const uint32_t second = (uint32_t)gm_clamp_s32(b, least, most);
    return ((uint32_t)gm_clamp_s32(a, least, most) & 0xFFFFU) | second << 16;
#endif
}

/* The value in both halves of a word. */
GM_INLINE uint32_t gm_twice_s16(int32_t value)
{
    return ((uint32_t)value & 0xFFFFU) * 0x10001U;
}

#if GM_ASM
/* clang-format off */

/* r0-r3: sums of four channels of the first pixel, r4-r7 of the second; r12: x, lr: weights. */
#define GM_PAIR_STEP(at, next)                                                                     \
    "ldr r10, [lr, #" #at "]\n\tldr r8, [r12, #" #at "]\n\tldr r9, [r12, #" #next "]\n\t"          \
    "sxtb16 r11, r10\n\tsxtb16 r10, r10, ror #8\n\t"                                               \
    "smlad r0, r8, r11, r0\n\tsmlad r4, r9, r11, r4\n\tldr r11, [lr, #" #next "]\n\t"              \
    "smlad r1, r8, r10, r1\n\tsmlad r5, r9, r10, r5\n\t"                                           \
    "sxtb16 r10, r11\n\tsxtb16 r11, r11, ror #8\n\t"                                               \
    "smlad r2, r8, r10, r2\n\tsmlad r6, r9, r10, r6\n\t"                                           \
    "smlad r3, r8, r11, r3\n\tsmlad r7, r9, r11, r7\n\t"
#define GM_PAIR_SHIFT(reg) "lsl " #reg ", " #reg ", r8\n\t"
#define GM_PAIR_SCALE(a, b, m)                                                                     \
    "smmlar " #a ", " #a ", " #m ", r12\n\tsmmlar " #b ", " #b ", " #m ", r12\n\t"                 \
    "ssat " #a ", #16, " #a "\n\tssat " #b ", #16, " #b "\n\t"
#define GM_PAIR_CLAMP(reg)                                                                         \
    "ssub16 r10, " #reg ", r8\n\tsel " #reg ", " #reg ", r8\n\t"                                   \
    "ssub16 r10, r9, " #reg "\n\tsel " #reg ", " #reg ", r9\n\t"

/* On the stack: end of the blocks, end of x, run. */
GM_NAKED GM_UNUSED void gm_pair_product(gm_pair_run_t *run GM_UNUSED)
{
    __asm__ volatile(
        "push {r0, r4-r11, lr}\n\tsub sp, sp, #8\n\t"
        "ldr r12, [r0]\n\tldr r1, [r0, #4]\n\tldr r2, [r0, #8]\n\tldr lr, [r0, #12]\n\t"
        "add r1, r1, r12\n\tadd r2, r2, r12\n\tstr r1, [sp]\n\tstr r2, [sp, #4]\n\t"
        "1:\n\t"
        "ldr r8, [sp, #8]\n\tldr r12, [r8]\n\tldm lr!, {r0-r3}\n\t"
        "mov r4, r0\n\tmov r5, r1\n\tmov r6, r2\n\tmov r7, r3\n\t"
        "ldr r8, [sp]\n\tcmp r12, r8\n\tbeq 3f\n\t"
        "2:\n\t"
        GM_PAIR_STEP(0, 4) GM_PAIR_STEP(8, 12) GM_PAIR_STEP(16, 20) GM_PAIR_STEP(24, 28)
        "ldr r8, [sp]\n\tadd r12, r12, #32\n\tadd lr, lr, #32\n\tcmp r12, r8\n\tbne 2b\n\t"
        "3:\n\t"
        "ldr r8, [sp, #4]\n\tcmp r12, r8\n\tbeq 4f\n\t"
        GM_PAIR_STEP(0, 4) GM_PAIR_STEP(8, 12)
        "add lr, lr, #16\n\t"
        "4:\n\t"
        "ldr r12, [sp, #8]\n\tldr r8, [r12, #40]\n\tcmp r8, #0\n\tbeq 5f\n\t"
        GM_PAIR_SHIFT(r0) GM_PAIR_SHIFT(r1) GM_PAIR_SHIFT(r2) GM_PAIR_SHIFT(r3)
        GM_PAIR_SHIFT(r4) GM_PAIR_SHIFT(r5) GM_PAIR_SHIFT(r6) GM_PAIR_SHIFT(r7)
        "5:\n\t"
        "ldr r12, [r12, #24]\n\tldm lr!, {r8-r11}\n\t"
        GM_PAIR_SCALE(r0, r4, r8) GM_PAIR_SCALE(r1, r5, r9)
        GM_PAIR_SCALE(r2, r6, r10) GM_PAIR_SCALE(r3, r7, r11)
        "pkhbt r0, r0, r1, lsl #16\n\tpkhbt r2, r2, r3, lsl #16\n\t"
        "pkhbt r4, r4, r5, lsl #16\n\tpkhbt r6, r6, r7, lsl #16\n\t"
        "ldr r12, [sp, #8]\n\tldr r8, [r12, #28]\n\tldr r9, [r12, #32]\n\t"
        GM_PAIR_CLAMP(r0) GM_PAIR_CLAMP(r2) GM_PAIR_CLAMP(r4) GM_PAIR_CLAMP(r6)
        "ldr r10, [r12, #16]\n\tldr r11, [r12, #20]\n\tldr r1, [r12, #36]\n\t"
        "add r11, r11, r10\n\tsubs r1, r1, #1\n\tstr r1, [r12, #36]\n\tbeq 6f\n\t"
        "str r4, [r11]\n\tstr r6, [r11, #4]\n\tstr r0, [r10]\n\tstr r2, [r10, #4]\n\t"
        "add r10, r10, #8\n\tstr r10, [r12, #16]\n\tb 1b\n\t"
        "6:\n\t"
        "ldr r1, [r12, #44]\n\tcmp r1, #1\n\tbne 7f\n\tstrh r4, [r11]\n\tstrh r0, [r10]\n\tb 9f\n\t"
        "7:\n\t"
        "str r4, [r11]\n\tstr r0, [r10]\n\tcmp r1, #3\n\tblt 9f\n\tbne 8f\n\t"
        "strh r6, [r11, #4]\n\tstrh r2, [r10, #4]\n\tb 9f\n\t"
        "8:\n\t"
        "str r6, [r11, #4]\n\tstr r2, [r10, #4]\n\t"
        "9:\n\t"
        "add sp, sp, #12\n\tpop {r4-r11, pc}\n\t" ::: "memory");
}

/* r0-r3: sums of four channels; r12: x, lr: weights. Four values. */
#define GM_SINGLE_LANES(w) "sxtb16 r10, " #w "\n\tsxtb16 " #w ", " #w ", ror #8\n\t"
#define GM_SINGLE_STEPS(x0, x1, w0, w1, w2, w3)                                                    \
    "ldr r4, [lr, #" #w0 "]\n\tldr r5, [lr, #" #w1 "]\n\tldr r6, [lr, #" #w2 "]\n\t"               \
    "ldr r7, [lr, #" #w3 "]\n\tldr r8, [r12, #" #x0 "]\n\tldr r9, [r12, #" #x1 "]\n\t"             \
    GM_SINGLE_LANES(r4) "smlad r0, r8, r10, r0\n\tsmlad r1, r8, r4, r1\n\t"                        \
    GM_SINGLE_LANES(r5) "smlad r2, r8, r10, r2\n\tsmlad r3, r8, r5, r3\n\t"                        \
    GM_SINGLE_LANES(r6) "smlad r0, r9, r10, r0\n\tsmlad r1, r9, r6, r1\n\t"                        \
    GM_SINGLE_LANES(r7) "smlad r2, r9, r10, r2\n\tsmlad r3, r9, r7, r3\n\t"
#define GM_SINGLE_SCALE(a, m)                                                                      \
    "smmlar " #a ", " #a ", " #m ", r12\n\tssat " #a ", #16, " #a "\n\t"

/* One pixel; on the stack as above. */
GM_NAKED GM_UNUSED void gm_single_product(gm_pair_run_t *run GM_UNUSED)
{
    __asm__ volatile(
        "push {r0, r4-r11, lr}\n\tsub sp, sp, #8\n\t"
        "ldr r12, [r0]\n\tldr r1, [r0, #4]\n\tldr r2, [r0, #8]\n\tldr lr, [r0, #12]\n\t"
        "add r1, r1, r12\n\tadd r2, r2, r12\n\tstr r1, [sp]\n\tstr r2, [sp, #4]\n\t"
        "1:\n\t"
        "ldr r8, [sp, #8]\n\tldr r12, [r8]\n\tldm lr!, {r0-r3}\n\t"
        "ldr r11, [sp]\n\tcmp r12, r11\n\tbeq 3f\n\t"
        "2:\n\t"
        GM_SINGLE_STEPS(0, 4, 0, 4, 8, 12) GM_SINGLE_STEPS(8, 12, 16, 20, 24, 28)
        "add r12, r12, #16\n\tadd lr, lr, #32\n\tcmp r12, r11\n\tbne 2b\n\t"
        "3:\n\t"
        "ldr r8, [sp, #4]\n\tcmp r12, r8\n\tbeq 4f\n\t"
        GM_SINGLE_STEPS(0, 4, 0, 4, 8, 12)
        "add lr, lr, #16\n\t"
        "4:\n\t"
        "ldr r12, [sp, #8]\n\tldr r8, [r12, #40]\n\t"
        GM_PAIR_SHIFT(r0) GM_PAIR_SHIFT(r1) GM_PAIR_SHIFT(r2) GM_PAIR_SHIFT(r3)
        "ldr r12, [r12, #24]\n\tldm lr!, {r4-r7}\n\t"
        GM_SINGLE_SCALE(r0, r4) GM_SINGLE_SCALE(r1, r5) GM_SINGLE_SCALE(r2, r6)
        GM_SINGLE_SCALE(r3, r7)
        "pkhbt r0, r0, r1, lsl #16\n\tpkhbt r2, r2, r3, lsl #16\n\t"
        "ldr r12, [sp, #8]\n\tldr r8, [r12, #28]\n\tldr r9, [r12, #32]\n\t"
        GM_PAIR_CLAMP(r0) GM_PAIR_CLAMP(r2)
        "ldr r10, [r12, #16]\n\tldr r1, [r12, #36]\n\t"
        "subs r1, r1, #1\n\tstr r1, [r12, #36]\n\tbeq 6f\n\t"
        "str r0, [r10]\n\tstr r2, [r10, #4]\n\tadd r10, r10, #8\n\tstr r10, [r12, #16]\n\tb 1b\n\t"
        "6:\n\t"
        "ldr r1, [r12, #44]\n\tcmp r1, #1\n\tbne 7f\n\tstrh r0, [r10]\n\tb 9f\n\t"
        "7:\n\t"
        "str r0, [r10]\n\tcmp r1, #3\n\tblt 9f\n\tbne 8f\n\tstrh r2, [r10, #4]\n\tb 9f\n\t"
        "8:\n\t"
        "str r2, [r10, #4]\n\t"
        "9:\n\t"
        "add sp, sp, #12\n\tpop {r4-r11, pc}\n\t" ::: "memory");
}
/* clang-format on */
#else
GM_OUTLINE void gm_single_product(gm_pair_run_t *run)
{
    const int32_t low = (int16_t)(run->low & 0xFFFFU);
    const int32_t high = (int16_t)(run->high & 0xFFFFU);
    const int32_t steps = run->bytes / 4;
    const int32_t *w = run->stream;
    for (; run->groups > 0; run->groups--) {
        int32_t sums[4] = {w[0], w[1], w[2], w[3]};
        w += 4;
        for (int32_t i = 0; i < steps; i++) {
            const uint32_t x = gm_load_u32(run->x + 2 * i);
            for (int32_t c = 0; c < 4; c += 2) {
                const uint32_t weights = (uint32_t)w[c / 2];
                sums[c] = gm_multiply_two(x, gm_even_bytes(weights), sums[c]);
                sums[c + 1] = gm_multiply_two(x, gm_odd_bytes(weights), sums[c + 1]);
            }
            w += 2;
        }
        for (int32_t c = 0; c < (run->groups == 1 ? run->last : 4); c++) {
            run->y[c] = (int16_t)gm_requant(sums[c], w[c], run->shift, run->zero_point, low, high);
        }
        w += 4;
        run->y += 4;
    }
}

GM_OUTLINE void gm_pair_product(gm_pair_run_t *run)
{
    const int32_t low = (int16_t)(run->low & 0xFFFFU);
    const int32_t high = (int16_t)(run->high & 0xFFFFU);
    const int32_t steps = run->bytes / 8;
    const int32_t *w = run->stream;
    for (; run->groups > 0; run->groups--) {
        int32_t sums[8] = {w[0], w[1], w[2], w[3], w[0], w[1], w[2], w[3]};
        w += 4;
        for (int32_t i = 0; i < steps; i++) {
            const uint32_t first = gm_load_u32(run->x + 4 * i);
            const uint32_t second = gm_load_u32(run->x + 4 * i + 2);
            for (int32_t c = 0; c < 4; c += 2) {
                const uint32_t even = gm_even_bytes((uint32_t)w[c / 2]);
                const uint32_t odd = gm_odd_bytes((uint32_t)w[c / 2]);
                sums[c] = gm_multiply_two(first, even, sums[c]);
                sums[c + 1] = gm_multiply_two(first, odd, sums[c + 1]);
                sums[c + 4] = gm_multiply_two(second, even, sums[c + 4]);
                sums[c + 5] = gm_multiply_two(second, odd, sums[c + 5]);
            }
            w += 2;
        }
        for (int32_t c = 0; c < (run->groups == 1 ? run->last : 4); c++) {
            run->y[c + run->second / 2] =
                (int16_t)gm_requant(sums[c + 4], w[c], run->shift, run->zero_point, low, high);
            run->y[c] = (int16_t)gm_requant(sums[c], w[c], run->shift, run->zero_point, low, high);
        }
        w += 4;
        run->y += 4;
    }
}
#endif

/* `count` values of two windows to where they lie interleaved, `at` values of each before them. */
GM_INLINE void gm_pair_gather(int16_t *to, int32_t at, const int16_t *a, const int16_t *b,
                              int32_t count)
{
    int32_t k = 0;
    if (at % 2 == 0) {
        int16_t *pair = to + 2 * at;
        for (; k + 2 <= count; k += 2) {
            gm_store_u32(pair, gm_load_u32(a + k));
            gm_store_u32(pair + 2, gm_load_u32(b + k));
            pair += 4;
        }
    }
    for (; k < count; k++) {
        const int32_t place = (at + k) / 2 * 4 + (at + k) % 2;
        to[place] = a[k];
        to[place + 2] = b[k];
    }
}

#endif
