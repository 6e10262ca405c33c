/* SPDX-License-Identifier: Apache-2.0
 * Fully connected layer, int8, for AVX2: one row times eight channels at a time. */
#ifndef GM_DENSE_S8_AVX2_H
#define GM_DENSE_S8_AVX2_H

#include "gm_avx2.h"
#include "gm_dense_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_dense_s8_t gm_dense_s8_avx2_t;

/* w, bias, multiplier: as for gm_avx2_product. scratch: a row as 16-bit values, an even number. */
GM_INLINE void gm_dense_s8_avx2_core(const gm_dense_s8_avx2_t *p, int8_t *GM_RESTRICT y,
                                     const int8_t *GM_RESTRICT x, const int16_t *GM_RESTRICT w,
                                     const int32_t *GM_RESTRICT bias,
                                     const int32_t *GM_RESTRICT multiplier, void *scratch)
{
    const gm_avx2_scale_t scale = {p->shift, p->zero_point, p->low, p->high};
    int16_t *const values = (int16_t *)scratch;
    const int32_t pairs = (p->inner + 1) / 2;
    values[2 * pairs - 1] = 0;
    for (int32_t r = 0; r < p->rows; r++) {
        gm_avx2_widen(values, x + r * p->inner, p->inner);
        gm_avx2_product(&scale, 1, y + r * p->cols, values, 0, pairs, p->cols, w, bias, multiplier);
    }
}

void gm_dense_s8_avx2(const gm_dense_s8_avx2_t *p, int8_t *GM_RESTRICT y,
                      const int8_t *GM_RESTRICT x, const int16_t *GM_RESTRICT w,
                      const int32_t *GM_RESTRICT bias, const int32_t *GM_RESTRICT multiplier,
                      void *scratch);

#ifdef __cplusplus
}
#endif

#endif
