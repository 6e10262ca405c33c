/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolution, int8, NHWC, for AVX2: two taps of sixteen channels at a time. */
#ifndef GM_DEPTHWISE_S8_AVX2_H
#define GM_DEPTHWISE_S8_AVX2_H

#include "gm_avx2.h"
#include "gm_depthwise_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_depthwise_s8_t gm_depthwise_s8_avx2_t;

/* Taps of a window, and channels of a vector. */
#define GM_DEPTHWISE_AVX2_TAPS 64
#define GM_DEPTHWISE_AVX2_LANES 16

/* The taps of the window that starts at pixel `first` of the rows: where their channels lie. */
GM_INLINE void gm_depthwise_s8_avx2_taps(const gm_depthwise_s8_avx2_t *p, const int8_t **taps,
                                         const void *const *rows, int32_t first,
                                         const int8_t *padding)
{
    for (int32_t i = 0; i < p->kernel_height; i++) {
        const int8_t *const row = (const int8_t *)rows[i];
        for (int32_t j = 0; j < p->kernel_width; j++) {
            const int32_t at = first + j * p->dilation_width;
            const int inside = row != NULL && at >= 0 && at < p->width;
            *taps++ = inside ? row + at * p->channels : padding;
        }
    }
}

/* Up to sixteen channels of a tap as 16-bit values. */
GM_INLINE __m256i gm_depthwise_s8_avx2_load(const int8_t *from, int32_t count)
{
    __m128i bytes = _mm_setzero_si128();
    if (count >= GM_DEPTHWISE_AVX2_LANES) {
        bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
    } else {
        int8_t some[GM_DEPTHWISE_AVX2_LANES] = {0};
        memcpy(some, from, (size_t)count);
        bytes = _mm_loadu_si128((const __m128i *)(const void *)some);
    }
    return _mm256_cvtepi8_epi16(bytes);
}

/* Channels `c` to `c + count` of one pixel. constants: 16 biases, for every two taps their weights
 * in turn, 16 multipliers. Channels 0 to 3 and 8 to 11 are in the first vector. */
GM_INLINE const int32_t *gm_depthwise_s8_avx2_block(const gm_depthwise_s8_avx2_t *p, int8_t *y,
                                                    const int8_t *const *taps, int32_t c,
                                                    int32_t count, const int32_t *constants)
{
    const gm_avx2_scale_t scale = {p->shift, p->zero_point, p->low, p->high};
    const int32_t number = p->kernel_height * p->kernel_width;
    const __m256i *w = (const __m256i *)(const void *)constants;
    __m256i low = _mm256_loadu_si256(w++);
    __m256i high = _mm256_loadu_si256(w++);
    for (int32_t t = 0; t < number; t += 2) {
        const __m256i a = gm_depthwise_s8_avx2_load(taps[t] + c, count);
        const __m256i b = t + 1 < number ? gm_depthwise_s8_avx2_load(taps[t + 1] + c, count) : a;
        const __m256i v = _mm256_loadu_si256(w++);
        const __m256i u = _mm256_loadu_si256(w++);
        low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), v));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), u));
    }
    low = gm_avx2_requant(&scale, low, _mm256_loadu_si256(w++));
    high = gm_avx2_requant(&scale, high, _mm256_loadu_si256(w++));
    const __m256i wide = _mm256_packs_epi32(low, high); /* channels in order */
    int8_t some[GM_DEPTHWISE_AVX2_LANES];
    _mm_storeu_si128((__m128i *)(void *)some, _mm_packs_epi16(_mm256_castsi256_si128(wide),
                                                              _mm256_extracti128_si256(wide, 1)));
    if (count >= GM_DEPTHWISE_AVX2_LANES) {
        memcpy(y + c, some, GM_DEPTHWISE_AVX2_LANES);
    } else {
        memcpy(y + c, some, (size_t)count);
    }
    return (const int32_t *)(const void *)w;
}

/* One row of the output from kernel_height rows of the input, NULL for padding. */
GM_INLINE void gm_depthwise_s8_avx2_row(const gm_depthwise_s8_avx2_t *p, int8_t *y,
                                        const void *const *rows, const int32_t *constants,
                                        void *scratch)
{
    const int8_t *taps[GM_DEPTHWISE_AVX2_TAPS];
    memset(scratch, p->fill, (size_t)p->channels);
    for (int32_t ox = 0; ox < p->out_width; ox++) {
        const int32_t *at = constants;
        gm_depthwise_s8_avx2_taps(p, taps, rows, ox * p->stride_width - p->pad_left,
                                  (const int8_t *)scratch);
        for (int32_t c = 0; c < p->channels; c += GM_DEPTHWISE_AVX2_LANES) {
            at = gm_depthwise_s8_avx2_block(p, y, taps, c, p->channels - c, at);
        }
        y += p->channels;
    }
}

/* w: blocks of sixteen channels, see above. scratch: one pixel. */
GM_INLINE void gm_depthwise_s8_avx2_core(const gm_depthwise_s8_avx2_t *p, int8_t *y,
                                         const int8_t *x, const int32_t *w, void *scratch)
{
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int32_t row = oy * p->stride_height - p->pad_top + i * p->dilation_height;
                const int inside = row >= 0 && row < p->height;
                rows[i] = inside ? x + row * p->width * p->channels : NULL;
            }
            gm_depthwise_s8_avx2_row(p, y, rows, w, scratch);
            y += p->out_width * p->channels;
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_depthwise_s8_avx2(const gm_depthwise_s8_avx2_t *p, int8_t *y, const int8_t *x,
                          const int32_t *w, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
