/* SPDX-License-Identifier: Apache-2.0
 * Exact Winograd convolution in integers, for the DSP extension of Armv7E-M and Armv8-M. All sums
 * wrap modulo 2^32, which loses nothing.
 * F(4x4, 3x3): 36 products make 16 outputs instead of 144. The transforms scale the results by
 * 9 * 2^k, 1/9 is a number modulo 2^32, and what remains, the accumulator times 2^k with k up to 6,
 * fits where |accumulator| < 2^25.
 * F(2x2, 3x3): 16 products make 4 outputs instead of 36; results are scaled by 4.
 * The hot loops are assembly, see gm_raw_product.h. */
#ifndef GM_WINOGRAD_H
#define GM_WINOGRAD_H

#include "gm_raw_product.h"

/* Bytes to int16 values x + 128, each four in the order 0, 2, 1, 3; count is a multiple of 4. */
GM_INLINE void gm_winograd_expand(int16_t *GM_RESTRICT to, const int8_t *GM_RESTRICT from,
                                  int32_t count)
{
    for (; count >= 16; count -= 16) {
        const uint32_t a = gm_load_u32(from) ^ 0x80808080U;
        const uint32_t b = gm_load_u32(from + 4) ^ 0x80808080U;
        const uint32_t c = gm_load_u32(from + 8) ^ 0x80808080U;
        const uint32_t d = gm_load_u32(from + 12) ^ 0x80808080U;
        gm_store_u32(to, a & 0x00FF00FFU);
        gm_store_u32(to + 2, a >> 8 & 0x00FF00FFU);
        gm_store_u32(to + 4, b & 0x00FF00FFU);
        gm_store_u32(to + 6, b >> 8 & 0x00FF00FFU);
        gm_store_u32(to + 8, c & 0x00FF00FFU);
        gm_store_u32(to + 10, c >> 8 & 0x00FF00FFU);
        gm_store_u32(to + 12, d & 0x00FF00FFU);
        gm_store_u32(to + 14, d >> 8 & 0x00FF00FFU);
        from += 16;
        to += 16;
    }
    for (; count > 0; count -= 4) {
        const uint32_t bytes = gm_load_u32(from) ^ 0x80808080U;
        gm_store_u32(to, bytes & 0x00FF00FFU);
        gm_store_u32(to + 2, bytes >> 8 & 0x00FF00FFU);
        from += 4;
        to += 4;
    }
}

/* An even number of values. */
GM_INLINE void gm_winograd_fill(int16_t *to, uint32_t value, int32_t count)
{
    for (int32_t i = 0; i < count; i += 2) {
        gm_store_u32(to + i, value | value << 16);
    }
}

GM_INLINE void gm_winograd_move(int16_t *to, const int16_t *from, int32_t count)
{
    for (int32_t i = 0; i < count; i += 4) {
        const uint32_t a = gm_load_u32(from + i);
        const uint32_t b = gm_load_u32(from + i + 2);
        gm_store_u32(to + i, a);
        gm_store_u32(to + i + 2, b);
    }
}

#if GM_ASM

/* Six values in r3-r8, transformed to r11, r4, r5, r3, r8, r12. */
#define GM_WINOGRAD_INPUT                                                                          \
    "sub r9, r7, r5\n\tsub r10, r6, r4\n\tsub r11, r3, r5\n\tadd r11, r9, r11, lsl #2\n\t"         \
    "sub r12, r8, r6\n\tsub r12, r12, r10, lsl #2\n\t"                                             \
    "add r3, r9, r10, lsl #1\n\tsub r8, r9, r10, lsl #1\n\t"                                       \
    "sub r9, r7, r5, lsl #2\n\tsub r10, r6, r4, lsl #2\n\tadd r4, r9, r10\n\tsub r5, r9, r10\n\t"
/* Six products in r3-r8, transformed to four sums in r3-r6. */
#define GM_WINOGRAD_OUTPUT                                                                         \
    "add r9, r4, r5\n\tsub r10, r4, r5\n\tadd r11, r6, r7\n\tsub r12, r6, r7\n\t"                  \
    "add r3, r3, r11\n\tadd r3, r3, r9, lsl #2\n\tadd r4, r12, r10, lsl #1\n\tadd r5, r9, r11\n\t" \
    "add r6, r10, r12, lsl #1\n\tadd r6, r6, r8\n\t"
#define GM_WINOGRAD_LOAD(from, a, b, c, d, e, f)                                                   \
    "ldr r3, [" #from ", #" #a "]\n\tldr r4, [" #from ", #" #b "]\n\t"                             \
    "ldr r5, [" #from ", #" #c "]\n\tldr r6, [" #from ", #" #d "]\n\t"                             \
    "ldr r7, [" #from ", #" #e "]\n\tldr r8, [" #from ", #" #f "]\n\t"
#define GM_WINOGRAD_STORE(to, a, b, c, d, e, f)                                                    \
    "str r11, [" #to ", #" #a "]\n\tstr r4, [" #to ", #" #b "]\n\tstr r5, [" #to ", #" #c "]\n\t"  \
    "str r3, [" #to ", #" #d "]\n\tstr r8, [" #to ", #" #e "]\n\tstr r12, [" #to ", #" #f "]\n\t"
#define GM_WINOGRAD_PLAIN                                                                          \
    "eor r11, r11, #0x8000\n\teor r4, r4, #0x8000\n\teor r5, r5, #0x8000\n\t"                      \
    "eor r3, r3, #0x8000\n\teor r8, r8, #0x8000\n\teor r12, r12, #0x8000\n\t"
/* Two values of two tiles times eight weights; op is smuad or smlad with its last operand. */
#define GM_WINOGRAD_PRODUCT(x0, x1, w, first, second, third)                                       \
    "ldr r8, [r12, #" #x0 "]\n\tldr r9, [r12, #" #x1 "]\n\t"                                       \
    "ldr r10, [lr, #" #w "]\n\tldr r11, [lr, #" #first "]\n\t"                                     \
    "smlad r0, r8, r10, r0\n\tsmlad r4, r9, r10, r4\n\t"                                           \
    "smlad r1, r8, r11, r1\n\tsmlad r5, r9, r11, r5\n\t"                                           \
    "ldr r10, [lr, #" #second "]\n\tldr r11, [lr, #" #third "]\n\t"                                \
    "smlad r2, r8, r10, r2\n\tsmlad r6, r9, r10, r6\n\t"                                           \
    "smlad r3, r8, r11, r3\n\tsmlad r7, r9, r11, r7\n\t"
#define GM_WINOGRAD_FIRST(x0, x1, w, first, second, third)                                         \
    "ldr r8, [r12, #" #x0 "]\n\tldr r9, [r12, #" #x1 "]\n\t"                                       \
    "ldr r10, [lr, #" #w "]\n\tldr r11, [lr, #" #first "]\n\t"                                     \
    "smuad r0, r8, r10\n\tsmuad r4, r9, r10\n\tsmuad r1, r8, r11\n\tsmuad r5, r9, r11\n\t"         \
    "ldr r10, [lr, #" #second "]\n\tldr r11, [lr, #" #third "]\n\t"                                \
    "smuad r2, r8, r10\n\tsmuad r6, r9, r10\n\tsmuad r3, r8, r11\n\tsmuad r7, r9, r11\n\t"
#define GM_WINOGRAD_KEEP(a, b, c, d, e, f, g, h)                                                   \
    "str r0, [r12, #" #a "]\n\tstr r1, [r12, #" #b "]\n\tstr r2, [r12, #" #c "]\n\t"               \
    "str r3, [r12, #" #d "]\n\tstr r4, [r12, #" #e "]\n\tstr r5, [r12, #" #f "]\n\t"               \
    "str r6, [r12, #" #g "]\n\tstr r7, [r12, #" #h "]\n\t"
/* Four sums of one row of the tile to bytes: multiplier lr, roundings r7-r9 of shifts a, b, c. */
#define GM_WINOGRAD_REQUANT(a, b, c)                                                               \
    "mul r3, r3, r12\n\tmul r4, r4, r12\n\tmul r5, r5, r12\n\tmul r6, r6, r12\n\t"                 \
    "smmla r3, r3, lr, r7\n\tsmmla r4, r4, lr, r8\n\t"                                             \
    "smmla r5, r5, lr, r9\n\tsmmla r6, r6, lr, r9\n\t"                                             \
    "ssat r3, #8, r3, asr #" #a "\n\tssat r4, #8, r4, asr #" #b "\n\t"                             \
    "ssat r5, #8, r5, asr #" #c "\n\tssat r6, #8, r6, asr #" #c "\n\t"
#define GM_WINOGRAD_CLAMP(reg, low, high)                                                          \
    "cmp " #reg ", #" #low "\n\tit lt\n\tmovlt " #reg ", #" #low "\n\t"                            \
    "cmp " #reg ", #" #high "\n\tit gt\n\tmovgt " #reg ", #" #high "\n\t"

/* Sums of F(2x2, 3x3): four of a column in r4-r7. */
#define GM_WINOGRAD_FOUR(a, b, c, d)                                                               \
    "ldr r4, [r0, #" #a "]\n\tldr r5, [r0, #" #b "]\n\t"                                           \
    "ldr r6, [r0, #" #c "]\n\tldr r7, [r0, #" #d "]\n\t"
/* Those transformed to two sums. */
#define GM_WINOGRAD_COLUMN(first, second)                                                          \
    "add " #first ", r5, r6\n\tsub " #second ", r5, r6\n\t"                                        \
    "add " #first ", " #first ", r4\n\tsub " #second ", " #second ", r7\n\t"

#else

GM_INLINE void gm_winograd_input6(const int32_t d[6], int32_t to[6])
{
    to[0] = 4 * d[0] - 5 * d[2] + d[4];
    to[1] = -4 * d[1] - 4 * d[2] + d[3] + d[4];
    to[2] = 4 * d[1] - 4 * d[2] - d[3] + d[4];
    to[3] = -2 * d[1] - d[2] + 2 * d[3] + d[4];
    to[4] = 2 * d[1] - d[2] - 2 * d[3] + d[4];
    to[5] = 4 * d[1] - 5 * d[3] + d[5];
}

/* A tile of 6x6 pixels, rows `pitch` values apart, to 36 positions `block` values apart. */
GM_INLINE void gm_winograd_input_4x4(const int16_t *x, int16_t *v, int32_t channels, int32_t pitch,
                                     int32_t block)
{
    for (int32_t c = 0; c < channels; c++) {
        int32_t half[6][6];
        for (int32_t r = 0; r < 6; r++) {
            int32_t d[6];
            for (int32_t k = 0; k < 6; k++) {
                d[k] = x[r * pitch + k * channels + c];
            }
            gm_winograd_input6(d, half[r]);
        }
        for (int32_t j = 0; j < 6; j++) {
            int32_t d[6];
            int32_t to[6];
            for (int32_t k = 0; k < 6; k++) {
                d[k] = half[k][j];
            }
            gm_winograd_input6(d, to);
            for (int32_t i = 0; i < 6; i++) {
                v[(j * 6 + i) * block + c] = (int16_t)to[i];
            }
        }
    }
}

GM_INLINE void gm_winograd_input4(const int32_t d[4], int32_t to[4])
{
    to[0] = d[0] - d[2];
    to[1] = d[1] + d[2];
    to[2] = d[2] - d[1];
    to[3] = d[1] - d[3];
}

/* The columns of a 4x4 transform in the order of its positions. */
GM_INLINE int32_t gm_winograd_column(int32_t place)
{
    return place < 2 ? place + 1 : place == 2 ? 0 : 3;
}

/* A tile of 4x4 pixels to 16 positions. */
GM_INLINE void gm_winograd_input_2x2(const int16_t *x, int16_t *v, int32_t channels, int32_t pitch,
                                     int32_t block)
{
    for (int32_t c = 0; c < channels; c++) {
        int32_t half[4][4];
        for (int32_t r = 0; r < 4; r++) {
            int32_t d[4];
            for (int32_t k = 0; k < 4; k++) {
                d[k] = x[r * pitch + k * channels + c];
            }
            gm_winograd_input4(d, half[r]);
        }
        for (int32_t place = 0; place < 4; place++) {
            int32_t d[4];
            int32_t to[4];
            for (int32_t k = 0; k < 4; k++) {
                d[k] = half[k][gm_winograd_column(place)];
            }
            gm_winograd_input4(d, to);
            for (int32_t i = 0; i < 4; i++) {
                v[(place * 4 + i) * block + c] = (int16_t)to[i];
            }
        }
    }
}

/* Per position eight sums: four channels of two tiles. */
GM_INLINE void gm_winograd_product(int16_t *v, const int32_t *u, int32_t channels, int32_t block,
                                   int32_t positions)
{
    for (int32_t at = 0; at < positions; at++) {
        int32_t sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (int32_t s = 0; s < channels; s += 2) {
            for (int32_t k = 0; k < 8; k++) {
                const int16_t *x = v + (k < 4 ? s : channels + s);
                sums[k] = __smlad((int16x2_t)gm_load_u32(x), (int16x2_t)u[k % 4], sums[k]);
            }
            u += 4;
        }
        memcpy(v + 2 * channels, sums, sizeof(sums));
        v += block;
    }
}

GM_INLINE void gm_winograd_output6(const uint32_t m[6], uint32_t to[4])
{
    to[0] = m[0] + m[3] + m[4] + 4U * (m[1] + m[2]);
    to[1] = m[3] - m[4] + 2U * (m[1] - m[2]);
    to[2] = m[1] + m[2] + m[3] + m[4];
    to[3] = m[1] - m[2] + 2U * (m[3] - m[4]) + m[5];
}

/* A tile of 4x4 outputs of four channels. m: the sums of the first position. */
GM_INLINE void gm_winograd_output_4x4(const int16_t *m, const int32_t *constants, int8_t *y,
                                      const int32_t *roundings, int32_t block, int32_t pixel,
                                      int32_t row, uint32_t ninth, int32_t low, int32_t high)
{
    static const int32_t powers[4] = {3, 2, 1, 1};
    for (int32_t c = 0; c < 4; c++) {
        uint32_t half[4][6];
        for (int32_t j = 0; j < 6; j++) {
            uint32_t sums[6];
            uint32_t to[4];
            for (int32_t k = 0; k < 6; k++) {
                sums[k] = gm_load_u32(m + (j * 6 + k) * block + 2 * c);
            }
            sums[1] += j == 1 ? (uint32_t)constants[c] : 0U;
            gm_winograd_output6(sums, to);
            for (int32_t i = 0; i < 4; i++) {
                half[i][j] = to[i];
            }
        }
        for (int32_t i = 0; i < 4; i++) {
            uint32_t to[4];
            gm_winograd_output6(half[i], to);
            for (int32_t j = 0; j < 4; j++) {
                const int32_t power = powers[i] + powers[j];
                const int64_t product = (int64_t)(int32_t)(to[j] * ninth) * constants[4 + c];
                const int32_t sum = (int32_t)(product >> 32) + roundings[power - 2];
                y[i * row + j * pixel + c] = (int8_t)gm_clamp_s32(sum >> power, low, high);
            }
        }
    }
}

/* A tile of 2x2 outputs of four channels. */
GM_INLINE void gm_winograd_output_2x2(const int16_t *m, const int32_t *constants, int8_t *y,
                                      const int32_t *roundings, int32_t block, int32_t pixel,
                                      int32_t row, int32_t shift, int32_t low, int32_t high)
{
    for (int32_t c = 0; c < 4; c++) {
        uint32_t half[2][4];
        for (int32_t place = 0; place < 4; place++) {
            const int32_t j = gm_winograd_column(place);
            uint32_t s[4];
            for (int32_t k = 0; k < 4; k++) {
                s[k] = gm_load_u32(m + (place * 4 + k) * block + 2 * c);
            }
            s[1] += j == 1 ? (uint32_t)constants[c] : 0U;
            half[0][j] = s[0] + s[1] + s[2];
            half[1][j] = s[1] - s[2] - s[3];
        }
        for (int32_t i = 0; i < 2; i++) {
            const uint32_t *h = half[i];
            const uint32_t found[2] = {h[0] + h[1] + h[2], h[1] - h[2] - h[3]};
            for (int32_t j = 0; j < 2; j++) {
                const int32_t acc = (int32_t)(found[j] << shift);
                const int32_t high_word = (int32_t)(((int64_t)acc * constants[4 + c]) >> 32);
                const int32_t result = (high_word + roundings[0]) >> 2;
                y[i * row + j * pixel + c] = (int8_t)gm_clamp_s32(result, low, high);
            }
        }
    }
}

#endif

#endif
