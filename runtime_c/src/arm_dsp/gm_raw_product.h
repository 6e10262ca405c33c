/* SPDX-License-Identifier: Apache-2.0
 * Products of int16 activations with raw int8 weights, for the DSP extension of Armv7E-M and
 * Armv8-M. An int16 lane holds two weights of two channels, 256 * a + b: SMLAD with the lane as it
 * is sums 256 A + B, SMLAD with SXTB16 of it sums B, and their difference is 256 A, exact modulo
 * 2^32 where |A| < 2^23. The hot loops are assembly, because compilers spill here; GM_NO_ASM, or
 * another compiler, takes C with ACLE intrinsics that gives the same bits. */
#ifndef GM_RAW_PRODUCT_H
#define GM_RAW_PRODUCT_H

#include "gm_requant.h"

#ifndef __ARM_FEATURE_DSP
#error "made for a processor with the DSP extension: compile with -mcpu=cortex-m4 or the like"
#endif

#if defined(__GNUC__) && !defined(GM_NO_ASM)
#define GM_ASM 1
#else
#define GM_ASM 0
#include <arm_acle.h>
#endif

/* One call of a product: pairs of neighbouring pixels times all channels. */
typedef struct {
    const int16_t *const *rows; /* one pointer to each segment of the window */
    int32_t offset;             /* bytes from there to the window of the first pixel */
    int8_t *y;
    int32_t second;         /* bytes from a pixel of y to the next; 0: there is one pixel only */
    const int32_t *weights; /* per four channels: biases, weights, multipliers */
    const int32_t *end;     /* of the weights */
    int32_t pairs;          /* of pixels, 1 or more */
    int32_t zero_point;     /* of y */
    uint32_t low;           /* clamp of y, four times */
    uint32_t high;
} gm_raw_run_t;

/* A call for one pair: w holds the zero point, low, high, more up to `head` words,
 * and then `words` of weights. */
GM_INLINE gm_raw_run_t gm_raw_start(const int16_t *const *rows, int8_t *y, int32_t second,
                                    const int32_t *w, int32_t head, int32_t words)
{
    gm_raw_run_t run;
    run.rows = rows;
    run.offset = 0;
    run.y = y;
    run.second = second;
    run.weights = w + head;
    run.end = w + head + words;
    run.pairs = 1;
    run.zero_point = w[0];
    run.low = (uint32_t)w[1];
    run.high = (uint32_t)w[2];
    return run;
}

GM_INLINE uint32_t gm_load_u32(const void *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

GM_INLINE void gm_store_u32(void *to, uint32_t value)
{
    memcpy(to, &value, sizeof(value));
}

#if GM_ASM
/* A function that is assembly from its first instruction to its last. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Woverlength-strings" /* which gcc allows in assembly */
#define GM_NAKED static __attribute__((naked, noinline))
#else
#define GM_NAKED static __attribute__((naked, noinline, noclone, noipa))
#endif
#define GM_UNUSED __attribute__((unused))
#endif

/* Bytes 0 and 2 as int16 lanes. */
GM_INLINE uint32_t gm_even_bytes(uint32_t value)
{
#if GM_ASM
    uint32_t lanes;
    __asm__("sxtb16 %0, %1" : "=r"(lanes) : "r"(value));
    return lanes;
#else
    return (uint32_t)__sxtb16((int8x4_t)value);
#endif
}

/* Bytes 1 and 3 as int16 lanes. */
GM_INLINE uint32_t gm_odd_bytes(uint32_t value)
{
#if GM_ASM
    uint32_t lanes;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(lanes) : "r"(value));
    return lanes;
#else
    return (uint32_t)__sxtb16((int8x4_t)(value >> 8 | value << 24));
#endif
}

/* `blocks` times 16 bytes to int16, each four in the order 0, 2, 1, 3. */
#if GM_ASM
/* clang-format off */
GM_NAKED GM_UNUSED void gm_expand_blocks(int16_t *to GM_UNUSED, const int8_t *from GM_UNUSED,
                                         int32_t blocks GM_UNUSED)
{
    __asm__ volatile(
        "push {r4-r9}\n\t"
        "1:\n\t"
        "ldr r4, [r1]\n\tldr r5, [r1, #4]\n\tldr r6, [r1, #8]\n\tldr r7, [r1, #12]\n\t"
        "sxtb16 r3, r4\n\tsxtb16 r4, r4, ror #8\n\tsxtb16 r8, r5\n\tsxtb16 r5, r5, ror #8\n\t"
        "sxtb16 r9, r6\n\tsxtb16 r6, r6, ror #8\n\tsxtb16 r12, r7\n\tsxtb16 r7, r7, ror #8\n\t"
        "str r3, [r0]\n\tstr r4, [r0, #4]\n\tstr r8, [r0, #8]\n\tstr r5, [r0, #12]\n\t"
        "str r9, [r0, #16]\n\tstr r6, [r0, #20]\n\tstr r12, [r0, #24]\n\tstr r7, [r0, #28]\n\t"
        "adds r1, r1, #16\n\tadds r0, r0, #32\n\tsubs r2, r2, #1\n\tbne 1b\n\t"
        "pop {r4-r9}\n\tbx lr\n\t" ::: "memory");
}

/* The same in their order. */
GM_NAKED GM_UNUSED void gm_widen_blocks(int16_t *to GM_UNUSED, const int8_t *from GM_UNUSED,
                                        int32_t blocks GM_UNUSED)
{
    __asm__ volatile(
        "push {r4-r9}\n\t"
        "1:\n\t"
        "ldr r4, [r1]\n\tldr r5, [r1, #4]\n\tldr r6, [r1, #8]\n\tldr r7, [r1, #12]\n\t"
        "sxtb16 r3, r4\n\tsxtb16 r4, r4, ror #8\n\tsxtb16 r8, r5\n\tsxtb16 r5, r5, ror #8\n\t"
        "pkhbt r9, r3, r4, lsl #16\n\tpkhtb r4, r4, r3, asr #16\n\t"
        "pkhbt r3, r8, r5, lsl #16\n\tpkhtb r5, r5, r8, asr #16\n\t"
        "str r9, [r0]\n\tstr r4, [r0, #4]\n\tstr r3, [r0, #8]\n\tstr r5, [r0, #12]\n\t"
        "sxtb16 r3, r6\n\tsxtb16 r6, r6, ror #8\n\tsxtb16 r8, r7\n\tsxtb16 r7, r7, ror #8\n\t"
        "pkhbt r9, r3, r6, lsl #16\n\tpkhtb r6, r6, r3, asr #16\n\t"
        "pkhbt r3, r8, r7, lsl #16\n\tpkhtb r7, r7, r8, asr #16\n\t"
        "str r9, [r0, #16]\n\tstr r6, [r0, #20]\n\tstr r3, [r0, #24]\n\tstr r7, [r0, #28]\n\t"
        "adds r1, r1, #16\n\tadds r0, r0, #32\n\tsubs r2, r2, #1\n\tbne 1b\n\t"
        "pop {r4-r9}\n\tbx lr\n\t" ::: "memory");
}
/* clang-format on */
#endif

/* Bytes to int16, each four in the order 0, 2, 1, 3; fewer than four at the end as they are. */
GM_INLINE void gm_expand_s8(int16_t *GM_RESTRICT to, const int8_t *GM_RESTRICT from, int32_t count)
{
#if GM_ASM
    if (count >= 16) {
        gm_expand_blocks(to, from, count / 16);
        to += count / 16 * 16;
        from += count / 16 * 16;
        count %= 16;
    }
#endif
    for (; count >= 4; count -= 4) {
        const uint32_t value = gm_load_u32(from);
        gm_store_u32(to, gm_even_bytes(value));
        gm_store_u32(to + 2, gm_odd_bytes(value));
        from += 4;
        to += 4;
    }
    for (; count > 0; count--) {
        *to++ = *from++;
    }
}

/* Bytes to int16 in their order. */
GM_INLINE void gm_widen_s8(int16_t *GM_RESTRICT to, const int8_t *GM_RESTRICT from, int32_t count)
{
#if GM_ASM
    if (count >= 16) {
        gm_widen_blocks(to, from, count / 16);
        to += count / 16 * 16;
        from += count / 16 * 16;
        count %= 16;
    }
#endif
    for (; count > 0; count--) {
        *to++ = *from++;
    }
}

GM_INLINE void gm_fill_s16(int16_t *to, int32_t value, int32_t count)
{
    for (; count > 0; count--) {
        *to++ = (int16_t)value;
    }
}

#if GM_ASM

/* clang-format off */

/* Values that are needed once per group lie in FPU registers, where a move costs one cycle; on the
 * stack without an FPU. */
#if defined(__ARM_FP)
#define GM_ENTER "push {r4-r11, lr}\n\tvpush {s16-s31}\n\t"
#define GM_LEAVE "vpop {s16-s31}\n\tpop {r4-r11, pc}\n\t"
#define GM_KEEP(slot, reg) "vmov s" #slot ", " #reg "\n\t"
#define GM_BACK(reg, slot) "vmov " #reg ", s" #slot "\n\t"
#else
#define GM_ENTER "push {r4-r11, lr}\n\tsub sp, sp, #128\n\t"
#define GM_LEAVE "add sp, sp, #128\n\tpop {r4-r11, pc}\n\t"
#define GM_KEEP(slot, reg) "str " #reg ", [sp, #4*" #slot "]\n\t"
#define GM_BACK(reg, slot) "ldr " #reg ", [sp, #4*" #slot "]\n\t"
#endif

/* Slots: 0 offset, 1 rows, 2 y, 3 zero point, 4 the same for 256 A, 5 end of the weights, 6 next
 * segment, 7 end of a loop, 8 weights, 9 second, 10 pairs, 11 end of a group's weights, 12 low,
 * 13 high, 14... pointers to segments. */
#define GM_RAW_BEGIN                                                                               \
    GM_ENTER                                                                                       \
    "ldr r1, [r0]\n\tldr r2, [r0, #4]\n\tldr r3, [r0, #8]\n\tldr r4, [r0, #12]\n\t"                \
    "ldr r5, [r0, #16]\n\tldr r6, [r0, #20]\n\tldr r7, [r0, #24]\n\tldr r8, [r0, #28]\n\t"         \
    "ldr r9, [r0, #32]\n\tldr r10, [r0, #36]\n\t"                                                  \
    GM_KEEP(1, r1) GM_KEEP(0, r2) GM_KEEP(2, r3) GM_KEEP(9, r4) GM_KEEP(8, r5) GM_KEEP(5, r6)      \
    GM_KEEP(10, r7) GM_KEEP(3, r8) GM_KEEP(12, r9) GM_KEEP(13, r10)                                \
    "lsl r8, r8, #8\n\tadd r8, r8, #128\n\t" GM_KEEP(4, r8)

/* r0-r3: sums of four channels of the first pixel (b, a, b, a), r4-r7 of the second; r12:
 * activations, lr: weights. Two values of each pixel times eight weights. */
#define GM_RAW_LOAD(x0, x1, w0, w1)                                                                \
    "ldr r8, [r12, #" #x0 "]\n\tldr r9, [r12, #" #x1 "]\n\t"                                       \
    "ldr r10, [lr, #" #w0 "]\n\tldr r11, [lr, #" #w1 "]\n\t"
#define GM_RAW_STEP(x0, x1, w0, w1)                                                                \
    GM_RAW_LOAD(x0, x1, w0, w1)                                                                    \
    "smlad r1, r8, r10, r1\n\tsmlad r5, r9, r10, r5\n\t"                                           \
    "smlad r3, r8, r11, r3\n\tsmlad r7, r9, r11, r7\n\t"                                           \
    "sxtb16 r10, r10\n\tsxtb16 r11, r11\n\t"                                                       \
    "smlad r0, r8, r10, r0\n\tsmlad r4, r9, r10, r4\n\t"                                           \
    "smlad r2, r8, r11, r2\n\tsmlad r6, r9, r11, r6\n\t"
/* The same where r0-r3 hold the biases of both pixels. */
#define GM_RAW_FIRST(x0, x1, w0, w1)                                                               \
    GM_RAW_LOAD(x0, x1, w0, w1)                                                                    \
    "smlad r5, r9, r10, r1\n\tsmlad r1, r8, r10, r1\n\t"                                           \
    "smlad r7, r9, r11, r3\n\tsmlad r3, r8, r11, r3\n\t"                                           \
    "sxtb16 r10, r10\n\tsxtb16 r11, r11\n\t"                                                       \
    "smlad r4, r9, r10, r0\n\tsmlad r0, r8, r10, r0\n\t"                                           \
    "smlad r6, r9, r11, r2\n\tsmlad r2, r8, r11, r2\n\t"
#define GM_RAW_COPY_BIASES "mov r4, r0\n\tmov r5, r1\n\tmov r6, r2\n\tmov r7, r3\n\t"

/* 256 A of both pixels, and a shift to the left of all sums. */
#define GM_RAW_PART "sub r1, r1, r0\n\tsub r5, r5, r4\n\tsub r3, r3, r2\n\tsub r7, r7, r6\n\t"
#define GM_RAW_SHIFT(n)                                                                            \
    "lsl r0, r0, #" #n "\n\tlsl r1, r1, #" #n "\n\tlsl r2, r2, #" #n "\n\tlsl r3, r3, #" #n "\n\t" \
    "lsl r4, r4, #" #n "\n\tlsl r5, r5, #" #n "\n\tlsl r6, r6, #" #n "\n\tlsl r7, r7, #" #n "\n\t"
#define GM_RAW_SATURATE                                                                            \
    "ssat r0, #8, r0\n\tssat r1, #8, r1, asr #8\n\tssat r2, #8, r2\n\tssat r3, #8, r3, asr #8\n\t" \
    "ssat r4, #8, r4\n\tssat r5, #8, r5, asr #8\n\tssat r6, #8, r6\n\tssat r7, #8, r7, asr #8\n\t"
/* With the multipliers at lr: int8 values of four channels in r0, of the second pixel in r4. */
#define GM_RAW_REQUANT                                                                             \
    GM_BACK(r10, 3) GM_BACK(r11, 4)                                                                \
    "ldr r8, [lr]\n\tldr r9, [lr, #4]\n\t"                                                         \
    "smmlar r0, r0, r8, r10\n\tsmmlar r4, r4, r8, r10\n\t"                                         \
    "smmla r1, r1, r9, r11\n\tsmmla r5, r5, r9, r11\n\t"                                           \
    "ldr r8, [lr, #8]\n\tldr r9, [lr, #12]\n\t"                                                    \
    "smmlar r2, r2, r8, r10\n\tsmmlar r6, r6, r8, r10\n\t"                                         \
    "smmla r3, r3, r9, r11\n\tsmmla r7, r7, r9, r11\n\t" GM_RAW_SATURATE
#define GM_RAW_PACK                                                                                \
    "bfi r0, r1, #8, #8\n\tbfi r2, r3, #8, #8\n\tpkhbt r0, r0, r2, lsl #16\n\t"                    \
    "bfi r4, r5, #8, #8\n\tbfi r6, r7, #8, #8\n\tpkhbt r4, r4, r6, lsl #16\n\t"
/* The same where the first channel of each two is the one in a. */
#define GM_RAW_PACK_SWAPPED                                                                        \
    "bfi r1, r0, #8, #8\n\tbfi r3, r2, #8, #8\n\tpkhbt r0, r1, r3, lsl #16\n\t"                    \
    "bfi r5, r4, #8, #8\n\tbfi r7, r6, #8, #8\n\tpkhbt r4, r5, r7, lsl #16\n\t"
#define GM_RAW_CLAMP1(reg)                                                                         \
    "ssub8 r9, " #reg ", r10\n\tsel " #reg ", " #reg ", r10\n\t"                                   \
    "ssub8 r9, r11, " #reg "\n\tsel " #reg ", " #reg ", r11\n\t"
#define GM_RAW_CLAMP GM_BACK(r10, 12) GM_BACK(r11, 13) GM_RAW_CLAMP1(r0) GM_RAW_CLAMP1(r4)

/* Store the bytes r0 at y and r4 at y + second; y goes on by as many. */
#define GM_RAW_STORE                                                                               \
    GM_BACK(r12, 2) GM_BACK(r8, 9)                                                                 \
    "str r4, [r12, r8]\n\tstr r0, [r12], #4\n\t" GM_KEEP(2, r12)
#define GM_RAW_STORE_1                                                                             \
    GM_BACK(r12, 2) GM_BACK(r8, 9)                                                                 \
    "strb r4, [r12, r8]\n\tstrb r0, [r12], #1\n\t" GM_KEEP(2, r12)
#define GM_RAW_STORE_2                                                                             \
    GM_BACK(r12, 2) GM_BACK(r8, 9)                                                                 \
    "strh r4, [r12, r8]\n\tstrh r0, [r12], #2\n\t" GM_KEEP(2, r12)
#define GM_RAW_STORE_3                                                                             \
    GM_RAW_STORE_2                                                                                 \
    "lsr r4, r4, #16\n\tlsr r0, r0, #16\n\t" GM_RAW_STORE_1

/* One pixel: r0-r3 sums, r12 activations, lr weights. Four values times sixteen weights. */
#define GM_RAW_DENSE(x0, x1, w0, w1, w2, w3)                                                       \
    "ldr r8, [r12, #" #x0 "]\n\tldr r9, [r12, #" #x1 "]\n\t"                                       \
    "ldr r4, [lr, #" #w0 "]\n\tldr r5, [lr, #" #w1 "]\n\t"                                         \
    "ldr r6, [lr, #" #w2 "]\n\tldr r7, [lr, #" #w3 "]\n\t"                                         \
    "smlad r1, r8, r4, r1\n\tsmlad r3, r8, r5, r3\n\t"                                             \
    "smlad r1, r9, r6, r1\n\tsmlad r3, r9, r7, r3\n\t"                                             \
    "sxtb16 r4, r4\n\tsxtb16 r5, r5\n\tsxtb16 r6, r6\n\tsxtb16 r7, r7\n\t"                         \
    "smlad r0, r8, r4, r0\n\tsmlad r2, r8, r5, r2\n\t"                                             \
    "smlad r0, r9, r6, r0\n\tsmlad r2, r9, r7, r2\n\t"

/* The same with four int8 activations at r12. */
#define GM_RAW_BYTES(x, w0, w1, w2, w3)                                                            \
    "ldr r9, [r12, #" #x "]\n\t"                                                                   \
    "ldr r4, [lr, #" #w0 "]\n\tldr r5, [lr, #" #w1 "]\n\t"                                         \
    "ldr r6, [lr, #" #w2 "]\n\tldr r7, [lr, #" #w3 "]\n\t"                                         \
    "sxtb16 r8, r9\n\tsxtb16 r9, r9, ror #8\n\t"                                                   \
    "smlad r1, r8, r4, r1\n\tsmlad r3, r8, r5, r3\n\t"                                             \
    "smlad r1, r9, r6, r1\n\tsmlad r3, r9, r7, r3\n\t"                                             \
    "sxtb16 r4, r4\n\tsxtb16 r5, r5\n\tsxtb16 r6, r6\n\tsxtb16 r7, r7\n\t"                         \
    "smlad r0, r8, r4, r0\n\tsmlad r2, r8, r5, r2\n\t"                                             \
    "smlad r0, r9, r6, r0\n\tsmlad r2, r9, r7, r2\n\t"
#define GM_RAW_DENSE1(x0, w0, w1)                                                                  \
    "ldr r8, [r12, #" #x0 "]\n\tldr r4, [lr, #" #w0 "]\n\tldr r5, [lr, #" #w1 "]\n\t"              \
    "smlad r1, r8, r4, r1\n\tsmlad r3, r8, r5, r3\n\tsxtb16 r4, r4\n\tsxtb16 r5, r5\n\t"           \
    "smlad r0, r8, r4, r0\n\tsmlad r2, r8, r5, r2\n\t"
#define GM_DENSE_SHIFT(n)                                                                          \
    "lsl r0, r0, #" #n "\n\tlsl r1, r1, #" #n "\n\tlsl r2, r2, #" #n "\n\tlsl r3, r3, #" #n "\n\t"
#define GM_DENSE_REQUANT                                                                           \
    GM_BACK(r10, 3) GM_BACK(r11, 4)                                                                \
    "ldr r4, [lr]\n\tldr r5, [lr, #4]\n\tldr r6, [lr, #8]\n\tldr r7, [lr, #12]\n\t"                \
    "smmlar r0, r0, r4, r10\n\tsmmla r1, r1, r5, r11\n\t"                                          \
    "smmlar r2, r2, r6, r10\n\tsmmla r3, r3, r7, r11\n\t"                                          \
    "ssat r0, #8, r0\n\tssat r1, #8, r1, asr #8\n\tssat r2, #8, r2\n\tssat r3, #8, r3, asr #8\n\t"
#define GM_DENSE_PACK "bfi r0, r1, #8, #8\n\tbfi r2, r3, #8, #8\n\tpkhbt r0, r0, r2, lsl #16\n\t"
#define GM_DENSE_PACK_SWAPPED                                                                      \
    "bfi r1, r0, #8, #8\n\tbfi r3, r2, #8, #8\n\tpkhbt r0, r1, r3, lsl #16\n\t"

/* Weights that stay in FPU registers while pixels go by: up to 16 words, one group of channels.
 * Slots: 16-19 biases, 20-23 multipliers, 24 y, 25 end of the activations, 26 zero point, 27 the
 * same for 256 A, 28 second, 29 low, 30 high; lr: activations. */
#define GM_STILL_BEGIN(last, advance)                                                              \
    GM_ENTER                                                                                       \
    "ldr r1, [r0, #16]\n\tldr r2, [r0, #8]\n\tldr r3, [r0, #28]\n\tldr r8, [r0, #12]\n\t"          \
    "ldr r9, [r0, #32]\n\tldr r10, [r0, #36]\n\t"                                                  \
    "ldm r1!, {r4-r7}\n\tvldm r1!, {s0-" #last "}\n\t"                                             \
    GM_KEEP(16, r4) GM_KEEP(17, r5) GM_KEEP(18, r6) GM_KEEP(19, r7)                                \
    "ldm r1, {r4-r7}\n\t"                                                                          \
    GM_KEEP(20, r4) GM_KEEP(21, r5) GM_KEEP(22, r6) GM_KEEP(23, r7)                                \
    GM_KEEP(24, r2) GM_KEEP(26, r3) GM_KEEP(28, r8)                                                \
    GM_KEEP(29, r9) GM_KEEP(30, r10)                                                               \
    "lsl r3, r3, #8\n\tadd r3, r3, #128\n\t" GM_KEEP(27, r3)                                       \
    "ldr lr, [r0]\n\tldr lr, [lr]\n\tldr r2, [r0, #4]\n\tadd lr, lr, r2\n\t"                       \
    "ldr r1, [r0, #24]\n\tmovw r2, #" #advance "\n\tmla r1, r1, r2, lr\n\t" GM_KEEP(25, r1)
#define GM_STILL_BIASES                                                                            \
    GM_BACK(r0, 16) GM_BACK(r1, 17) GM_BACK(r2, 18) GM_BACK(r3, 19)
#define GM_STILL_LOAD(x0, x1, x2, x3)                                                              \
    "ldr r8, [lr, #" #x0 "]\n\tldr r9, [lr, #" #x1 "]\n\t"                                         \
    "ldr r10, [lr, #" #x2 "]\n\tldr r11, [lr, #" #x3 "]\n\t"
#define GM_STILL_STEP(u, v, w0, w1)                                                                \
    "vmov r12, " #w0 "\n\tsmlad r1, " #u ", r12, r1\n\tsmlad r5, " #v ", r12, r5\n\t"              \
    "sxtb16 r12, r12\n\tsmlad r0, " #u ", r12, r0\n\tsmlad r4, " #v ", r12, r4\n\t"                \
    "vmov r12, " #w1 "\n\tsmlad r3, " #u ", r12, r3\n\tsmlad r7, " #v ", r12, r7\n\t"              \
    "sxtb16 r12, r12\n\tsmlad r2, " #u ", r12, r2\n\tsmlad r6, " #v ", r12, r6\n\t"
#define GM_STILL_FIRST(u, v, w0, w1)                                                               \
    "vmov r12, " #w0 "\n\tsmlad r5, " #v ", r12, r1\n\tsmlad r1, " #u ", r12, r1\n\t"              \
    "sxtb16 r12, r12\n\tsmlad r4, " #v ", r12, r0\n\tsmlad r0, " #u ", r12, r0\n\t"                \
    "vmov r12, " #w1 "\n\tsmlad r7, " #v ", r12, r3\n\tsmlad r3, " #u ", r12, r3\n\t"              \
    "sxtb16 r12, r12\n\tsmlad r6, " #v ", r12, r2\n\tsmlad r2, " #u ", r12, r2\n\t"
#define GM_STILL_REQUANT                                                                           \
    GM_BACK(r8, 20) GM_BACK(r9, 21) GM_BACK(r10, 22) GM_BACK(r11, 23)                              \
    GM_BACK(r12, 26)                                                                               \
    "smmlar r0, r0, r8, r12\n\tsmmlar r4, r4, r8, r12\n\t"                                         \
    "smmlar r2, r2, r10, r12\n\tsmmlar r6, r6, r10, r12\n\t"                                       \
    GM_BACK(r12, 27)                                                                               \
    "smmla r1, r1, r9, r12\n\tsmmla r5, r5, r9, r12\n\t"                                           \
    "smmla r3, r3, r11, r12\n\tsmmla r7, r7, r11, r12\n\t" GM_RAW_SATURATE
#define GM_STILL_CLAMP                                                                             \
    GM_BACK(r10, 29) GM_BACK(r11, 30) GM_RAW_CLAMP1(r0) GM_RAW_CLAMP1(r4)
#define GM_STILL_STORE                                                                             \
    GM_BACK(r8, 24) GM_BACK(r9, 28)                                                                \
    "str r4, [r8, r9]\n\tstr r0, [r8]\n\tadd r8, r8, r9, lsl #1\n\t" GM_KEEP(24, r8)
/* On to the next pair. */
#define GM_STILL_NEXT(advance)                                                                     \
    "addw lr, lr, #" #advance "\n\t" GM_BACK(r9, 25) "cmp lr, r9\n\tbne 1b\n\t"
/* clang-format on */

#else

/* Requantize four sums (b, 256 a + b, b, 256 a + b) of one pixel and store the first `count`. */
GM_INLINE void gm_raw_store(const gm_raw_run_t *run, int8_t *y, int32_t *sum,
                            const int32_t *multiplier, int32_t count, int32_t swapped,
                            int32_t shift)
{
    const int32_t low = (int8_t)(run->low & 0xFFU);
    const int32_t high = (int8_t)(run->high & 0xFFU);
    for (int32_t c = 0; c < 4; c++) {
        const int32_t at = swapped ? c ^ 1 : c;
        if ((c & 1) != 0) {
            sum[c] = (int32_t)((uint32_t)sum[c] - (uint32_t)sum[c - 1]) >> 8;
        }
        if (at < count) {
            y[at] = gm_requant_s8(sum[c], multiplier[c], shift, run->zero_point, low, high);
        }
    }
}

/* Pairs of pixels: `segments` runs of `steps` words at rows[k] + offset, the second pixel
 * `distance` bytes further, the next pair `advance`; the last group has `tail` channels, 0 for
 * four. */
GM_INLINE void gm_raw_pairs(const gm_raw_run_t *run, int32_t segments, int32_t steps,
                            int32_t distance, int32_t advance, int32_t tail, int32_t swapped,
                            int32_t shift)
{
    int32_t offset = run->offset;
    for (int32_t pair = 0; pair < run->pairs; pair++) {
        int8_t *y = run->y + 2 * pair * run->second;
        const int32_t *w = run->weights;
        while (w != run->end) {
            int32_t p[4] = {w[0], w[1], w[2], w[3]};
            int32_t q[4] = {w[0], w[1], w[2], w[3]};
            w += 4;
            for (int32_t s = 0; s < segments; s++) {
                const char *x = (const char *)run->rows[s] + offset;
                for (int32_t k = 0; k < steps; k++) {
                    const int16x2_t u = (int16x2_t)gm_load_u32(x + 4 * k);
                    const int16x2_t v = (int16x2_t)gm_load_u32(x + distance + 4 * k);
                    const int16x2_t w0 = (int16x2_t)w[0];
                    const int16x2_t w1 = (int16x2_t)w[1];
                    const int16x2_t b0 = __sxtb16((int8x4_t)w[0]);
                    const int16x2_t b1 = __sxtb16((int8x4_t)w[1]);
                    p[0] = __smlad(u, b0, p[0]);
                    p[1] = __smlad(u, w0, p[1]);
                    p[2] = __smlad(u, b1, p[2]);
                    p[3] = __smlad(u, w1, p[3]);
                    q[0] = __smlad(v, b0, q[0]);
                    q[1] = __smlad(v, w0, q[1]);
                    q[2] = __smlad(v, b1, q[2]);
                    q[3] = __smlad(v, w1, q[3]);
                    w += 2;
                }
            }
            const int32_t count = tail != 0 && w + 4 == run->end ? tail : 4;
            gm_raw_store(run, y + run->second, q, w, count, swapped, shift);
            gm_raw_store(run, y, p, w, count, swapped, shift);
            w += 4;
            y += count;
        }
        offset += advance;
    }
}

/* One pixel of 4 * fours int8 values at rows[0] times all channels. */
GM_INLINE void gm_raw_bytes(const gm_raw_run_t *run, int32_t fours, int32_t tail, int32_t swapped,
                            int32_t shift)
{
    int8_t *y = run->y;
    const int32_t *w = run->weights;
    while (w != run->end) {
        const char *x = (const char *)run->rows[0];
        int32_t p[4] = {w[0], w[1], w[2], w[3]};
        w += 4;
        for (int32_t k = 0; k < fours; k++) {
            const uint32_t value = gm_load_u32(x + 4 * k);
            const int16x2_t lanes[2] = {(int16x2_t)gm_even_bytes(value),
                                        (int16x2_t)gm_odd_bytes(value)};
            for (int32_t j = 0; j < 2; j++) {
                p[0] = __smlad(lanes[j], __sxtb16((int8x4_t)w[0]), p[0]);
                p[1] = __smlad(lanes[j], (int16x2_t)w[0], p[1]);
                p[2] = __smlad(lanes[j], __sxtb16((int8x4_t)w[1]), p[2]);
                p[3] = __smlad(lanes[j], (int16x2_t)w[1], p[3]);
                w += 2;
            }
        }
        const int32_t count = tail != 0 && w + 4 == run->end ? tail : 4;
        gm_raw_store(run, y, p, w, count, swapped, shift);
        w += 4;
        y += count;
    }
}

#endif

#endif
