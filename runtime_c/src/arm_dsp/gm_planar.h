/* SPDX-License-Identifier: Apache-2.0
 * Depthwise products on lines of int16, one channel a line, for the DSP extension of Armv7E-M and
 * Armv8-M: four channels are spread from NHWC to lines, and a multiply-accumulate does two taps.
 * The hot loops are assembly, see gm_raw_product.h. */
#ifndef GM_PLANAR_H
#define GM_PLANAR_H

#include "gm_raw_product.h"

/* One call: some channels of the rows that lie spread. */
typedef struct {
    const int16_t *line;  /* the first line of the first channel */
    const int32_t *words; /* per channel: bias, multiplier, pairs of weights */
    int8_t *y;
    int32_t rows;       /* tiles one below the other */
    int32_t channels;   /* 1 or more */
    int32_t zero_point; /* of y */
    int32_t low;        /* clamp of y */
    int32_t high;
} gm_planar_run_t;

/* The low and the high lanes of two words. */
GM_INLINE uint32_t gm_low_lanes(uint32_t a, uint32_t b)
{
#if GM_ASM
    uint32_t lanes;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(lanes) : "r"(a), "r"(b));
    return lanes;
#else
    return (a & 0xFFFFU) | b << 16;
#endif
}

GM_INLINE uint32_t gm_high_lanes(uint32_t a, uint32_t b)
{
#if GM_ASM
    uint32_t lanes;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(lanes) : "r"(b), "r"(a));
    return lanes;
#else
    return a >> 16 | (b & 0xFFFF0000U);
#endif
}

/* Two neighbouring pixels of four channels. */
GM_INLINE void gm_planar_put(int16_t *to, int32_t plane, uint32_t a, uint32_t b)
{
    const uint32_t even_a = gm_even_bytes(a);
    const uint32_t even_b = gm_even_bytes(b);
    const uint32_t odd_a = gm_odd_bytes(a);
    const uint32_t odd_b = gm_odd_bytes(b);
    gm_store_u32(to, gm_low_lanes(even_a, even_b));
    gm_store_u32(to + plane, gm_low_lanes(odd_a, odd_b));
    gm_store_u32(to + 2 * plane, gm_high_lanes(even_a, even_b));
    gm_store_u32(to + 3 * plane, gm_high_lanes(odd_a, odd_b));
}

/* Keeps the compiler from unrolling a loop whose length it knows. */
#if defined(__GNUC__)
#define GM_PLANAR_LOOP(count) __asm__("" : "+r"(count))
#else
#define GM_PLANAR_LOOP(count) ((void)0)
#endif

/* One row of four channels to a line of each; `left` values of padding lie before. */
GM_INLINE void gm_planar_spread(int16_t *to, int32_t plane, const int8_t *x, int32_t channels,
                                int32_t left, int32_t pixels, uint32_t fill)
{
    int32_t rest = pixels;
    to += left / 2 * 2;
    if (left % 2 != 0) {
        gm_planar_put(to, plane, fill, gm_load_u32(x));
        x += channels;
        to += 2;
        rest--;
    }
    int32_t fours = rest / 4;
    if (pixels > 16) {
        GM_PLANAR_LOOP(fours);
    }
    for (; fours > 0; fours--) {
        const uint32_t a = gm_load_u32(x);
        const uint32_t b = gm_load_u32(x + channels);
        const uint32_t c = gm_load_u32(x + 2 * channels);
        const uint32_t d = gm_load_u32(x + 3 * channels);
        gm_planar_put(to, plane, a, b);
        gm_planar_put(to + 2, plane, c, d);
        x += 4 * channels;
        to += 4;
    }
    rest %= 4;
    if (rest >= 2) {
        gm_planar_put(to, plane, gm_load_u32(x), gm_load_u32(x + channels));
        x += 2 * channels;
        to += 2;
        rest -= 2;
    }
    if (rest > 0) {
        gm_planar_put(to, plane, gm_load_u32(x), fill);
    }
}

/* The same for the last one to three channels. */
GM_OUTLINE void gm_planar_spread_few(int16_t *to, int32_t plane, const int8_t *x, int32_t channels,
                                     int32_t pixels, int32_t count)
{
    for (int32_t c = 0; c < count; c++) {
        for (int32_t i = 0; i < pixels; i++) {
            to[c * plane + i] = x[i * channels + c];
        }
    }
}

/* An even number of values from one place to another further down. */
GM_OUTLINE void gm_planar_move(int16_t *to, const int16_t *from, int32_t count)
{
    for (; count >= 8; count -= 8) {
        const uint32_t a = gm_load_u32(from);
        const uint32_t b = gm_load_u32(from + 2);
        const uint32_t c = gm_load_u32(from + 4);
        const uint32_t d = gm_load_u32(from + 6);
        gm_store_u32(to, a);
        gm_store_u32(to + 2, b);
        gm_store_u32(to + 4, c);
        gm_store_u32(to + 6, d);
        from += 8;
        to += 8;
    }
    for (; count > 0; count -= 2) {
        gm_store_u32(to, gm_load_u32(from));
        from += 2;
        to += 2;
    }
}

/* A row of padding of four channels. */
GM_INLINE void gm_planar_pad(int16_t *to, int32_t plane, int32_t value, int32_t count)
{
    const uint32_t both = ((uint32_t)value & 0xFFFFU) | (uint32_t)value << 16;
    for (int32_t i = 0; i < count; i += 2) {
        gm_store_u32(to + i, both);
        gm_store_u32(to + i + plane, both);
        gm_store_u32(to + i + 2 * plane, both);
        gm_store_u32(to + i + 3 * plane, both);
    }
}

/* An even number of values. */
GM_OUTLINE void gm_planar_fill(int16_t *to, int32_t value, int32_t count)
{
    const uint32_t both = ((uint32_t)value & 0xFFFFU) | (uint32_t)value << 16;
    for (; count >= 8; count -= 8) {
        gm_store_u32(to, both);
        gm_store_u32(to + 2, both);
        gm_store_u32(to + 4, both);
        gm_store_u32(to + 6, both);
        to += 8;
    }
    for (; count > 0; count -= 2) {
        gm_store_u32(to, both);
        to += 2;
    }
}

#if GM_ASM

#if defined(__ARM_FP)
#define GM_PLANAR_ENTER "push {r4-r11, lr}\n\t"
#define GM_PLANAR_LEAVE "pop {r4-r11, pc}\n\t"
#else
#define GM_PLANAR_ENTER "push {r4-r11, lr}\n\tsub sp, sp, #64\n\t"
#define GM_PLANAR_LEAVE "add sp, sp, #64\n\tpop {r4-r11, pc}\n\t"
#endif

/* Slots: 0 bias, 1 multiplier, 2 zero point, 3 y, 4 end of the tiles, 5 rows, 6 next channel's
 * words, 7 channels, 8 line, 9 low, 10 high, 11 rows of all channels, 12 y of a channel, 13
 * weights. Registers in a tile: r0-r3 sums, r4-r9 weights, r10, r11, lr: values; r12: line. */
#define GM_PLANAR_BEGIN                                                                            \
    GM_PLANAR_ENTER                                                                                \
    "ldm r0, {r4-r11}\n\t" GM_KEEP(8, r4) GM_KEEP(6, r5) GM_KEEP(12, r6) GM_KEEP(11, r7)           \
        GM_KEEP(7, r8) GM_KEEP(2, r9) GM_KEEP(9, r10) GM_KEEP(10, r11)
#define GM_PLANAR_CHANNEL                                                                          \
    GM_BACK(lr, 6)                                                                                 \
    "ldm lr!, {r0, r1}\n\t" GM_KEEP(0, r0) GM_KEEP(1, r1) GM_BACK(r12, 8) GM_BACK(r11, 12)         \
        GM_KEEP(3, r11) GM_BACK(r10, 11) GM_KEEP(5, r10)
#define GM_PLANAR_NEXT_ROW GM_BACK(r10, 5) "subs r10, r10, #1\n\t" GM_KEEP(5, r10)
#define GM_PLANAR_NEXT_CHANNEL                                                                     \
    GM_BACK(r11, 12)                                                                               \
    "add r11, r11, #1\n\t" GM_KEEP(12, r11) GM_BACK(r10, 7) "subs r10, r10, #1\n\t" GM_KEEP(7, r10)

#define GM_PLANAR_LOAD(x, at) "ldr r" #x ", [r12, #" #at "]\n\t"
#define GM_PLANAR_MLA(op, sum, x, w, base) #op " r" #sum ", r" #x ", r" #w ", r" #base "\n\t"
#define GM_PLANAR_SHIFT(sum, n) "lsl r" #sum ", r" #sum ", #" #n "\n\t"
#define GM_PLANAR_REQUANT(sum) "smmlar r" #sum ", r" #sum ", lr, r10\n\t"
#define GM_PLANAR_SATURATE(sum) "ssat r" #sum ", #8, r" #sum "\n\t"
#define GM_PLANAR_AT_LEAST(sum) "cmp r" #sum ", r10\n\tit lt\n\tmovlt r" #sum ", r10\n\t"
#define GM_PLANAR_AT_MOST(sum) "cmp r" #sum ", r10\n\tit gt\n\tmovgt r" #sum ", r10\n\t"
#define GM_PLANAR_STORE(sum, to, at) "strb r" #sum ", [" #to ", #" #at "]\n\t"

#endif

#endif
