/* SPDX-License-Identifier: Apache-2.0
 * Logarithm of softmax of int16 rows in integers: x - max - log(sum), see gm_softmax_s16.h. */
#ifndef GM_LOG_SOFTMAX_S16_H
#define GM_LOG_SOFTMAX_S16_H

#include "gm_softmax_s16.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_softmax_s16_t gm_log_softmax_s16_t;

/* log2(sum / 2^one) in 2^-20ths; logarithms: of 1 + i / 128 for i = 0..128. */
GM_INLINE int32_t gm_log_softmax_log2(int32_t sum, int32_t one, const int32_t *logarithms)
{
    uint32_t m = (uint32_t)sum;
    int32_t whole = 31 - one;
    while (m < UINT32_C(0x80000000)) {
        m <<= 1;
        whole--;
    }
    const int32_t *v = logarithms + ((m >> 24) & 127);
    const int64_t step = (int64_t)(v[1] - v[0]) * (int32_t)(m & 0xFFFFFF);
    return whole * (INT32_C(1) << 20) + v[0] + (int32_t)(step >> 24);
}

/* table: 129 powers as for gm_softmax_s16, then 129 logarithms. y may be x. */
GM_INLINE void gm_log_softmax_s16_core(const gm_log_softmax_s16_t *p, int16_t *y, const int16_t *x,
                                       const int32_t *GM_RESTRICT table)
{
    for (int32_t r = 0; r < p->rows; r++) {
        const int32_t highest = gm_softmax_highest_s16(x, p->cols);
        const int32_t sum = gm_softmax_sum_s16(p, x, table, highest);
        const int32_t log2 = gm_log_softmax_log2(sum, 30 - p->sum_shift, table + 129);
        const int64_t offset = -(int64_t)log2 * p->log_multiplier;
        for (int32_t i = 0; i < p->cols; i++) {
            const int64_t below = highest - x[i];
            y[i] = gm_softmax_store_s16(p, offset - below * p->multiplier);
        }
        x += p->cols;
        y += p->cols;
    }
}

void gm_log_softmax_s16(const gm_log_softmax_s16_t *p, int16_t *y, const int16_t *x,
                        const int32_t *GM_RESTRICT table);

#ifdef __cplusplus
}
#endif

#endif
