/* SPDX-License-Identifier: Apache-2.0
 * AVX2: products of up to four pixels and eight channels, their requantization. */
#ifndef GM_AVX2_H
#define GM_AVX2_H

#include "gm_requant.h"

#if !defined(__AVX2__)
#error "this kernel needs a processor with AVX2: compile with -mavx2"
#endif

#include <immintrin.h>

/* How sums of a layer become values of its output. */
typedef struct {
    int32_t shift;
    int32_t zero_point;
    int32_t low;
    int32_t high;
} gm_avx2_scale_t;

/* gm_requant_s8 of eight sums, as 32-bit values. */
GM_INLINE __m256i gm_avx2_requant(const gm_avx2_scale_t *p, __m256i acc, __m256i multiplier)
{
    const __m256i half = _mm256_set1_epi64x(INT64_C(0x80000000));
    const __m256i sum = _mm256_slli_epi32(acc, p->shift);
    const __m256i even = _mm256_mul_epi32(sum, multiplier);
    const __m256i odd =
        _mm256_mul_epi32(_mm256_srli_epi64(sum, 32), _mm256_srli_epi64(multiplier, 32));
    const __m256i low = _mm256_srli_epi64(_mm256_add_epi64(even, half), 32);
    const __m256i scaled = _mm256_blend_epi32(low, _mm256_add_epi64(odd, half), 0xAA);
    const __m256i placed = _mm256_add_epi32(scaled, _mm256_set1_epi32(p->zero_point));
    return _mm256_min_epi32(_mm256_max_epi32(placed, _mm256_set1_epi32(p->low)),
                            _mm256_set1_epi32(p->high));
}

/* Store the first `count` of eight values in the range of int8. */
GM_INLINE void gm_avx2_store(int8_t *y, int32_t count, __m256i values)
{
    const __m128i wide =
        _mm_packs_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
    int64_t bytes;
    _mm_storel_epi64((__m128i *)(void *)&bytes, _mm_packs_epi16(wide, wide));
    if (count >= 8) {
        memcpy(y, &bytes, 8);
    } else {
        memcpy(y, &bytes, (size_t)count);
    }
}

/* Widen `count` values to 16 bits; the last one gets a zero beside it where their number is odd.
 * Only these are read and written. */
GM_INLINE void gm_avx2_widen(int16_t *to, const int8_t *from, int32_t count)
{
    int32_t k = 0;
    for (; k <= count - 16; k += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(from + k));
        _mm256_storeu_si256((__m256i *)(void *)(to + k), _mm256_cvtepi8_epi16(bytes));
    }
    for (; k < count; k++) {
        to[k] = from[k];
    }
}

/* Add the products of two neighbouring values with the two weights of eight channels. */
GM_INLINE __m256i gm_avx2_add(__m256i sum, const int16_t *x, __m256i weights)
{
    int32_t both;
    memcpy(&both, x, sizeof both);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_set1_epi32(both), weights));
}

/* All channels of `pixels` pixels (1 or 4, a constant at every call), whose 2 * `pairs` values lie
 * `pitch` apart from those of the next one.
 * w: per eight channels, for every pair of values the two weights of each channel; bias and
 * multiplier padded to a multiple of eight. */
GM_INLINE void gm_avx2_product(const gm_avx2_scale_t *p, int32_t pixels, int8_t *y,
                               const int16_t *x, int32_t pitch, int32_t pairs, int32_t channels,
                               const int16_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                               const int32_t *GM_RESTRICT multiplier)
{
    for (int32_t n = 0; n < channels; n += 8) {
        const int32_t left = channels - n;
        const __m256i scale = _mm256_loadu_si256((const __m256i *)(const void *)(multiplier + n));
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(bias + n));
        __m256i b = a;
        __m256i c = a;
        __m256i d = a;
        for (int32_t k = 0; k < pairs; k++) {
            const __m256i weights = _mm256_loadu_si256((const __m256i *)(const void *)w);
            a = gm_avx2_add(a, x + 2 * k, weights);
            if (pixels == 4) {
                b = gm_avx2_add(b, x + pitch + 2 * k, weights);
                c = gm_avx2_add(c, x + 2 * pitch + 2 * k, weights);
                d = gm_avx2_add(d, x + 3 * pitch + 2 * k, weights);
            }
            w += 16;
        }
        gm_avx2_store(y + n, left, gm_avx2_requant(p, a, scale));
        if (pixels == 4) {
            gm_avx2_store(y + channels + n, left, gm_avx2_requant(p, b, scale));
            gm_avx2_store(y + 2 * channels + n, left, gm_avx2_requant(p, c, scale));
            gm_avx2_store(y + 3 * channels + n, left, gm_avx2_requant(p, d, scale));
        }
    }
}

#endif
