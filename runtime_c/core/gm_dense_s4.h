/* SPDX-License-Identifier: Apache-2.0
 * Fully connected layer, int8, with weights of 4 bits: the same bits as gm_dense_s8 gives. */
#ifndef GM_DENSE_S4_H
#define GM_DENSE_S4_H

#include "gm_requant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows;       /* 1 or more */
    int32_t inner;      /* K, 1 to 2^20 */
    int32_t cols;       /* N, 1 or more */
    int32_t shift;      /* left shift of the accumulator, 0..15 */
    int32_t zero_point; /* of y */
    int32_t low;        /* clamp of y, -128 <= low <= high <= 127 */
    int32_t high;
} gm_dense_s4_t;

/* w: [ceil(N / 4)][K][2], four rows in two bytes, the first in the lowest bits; 8 is added to each
 * weight, so that fields need no sign, and 8 times the sum of x is taken off in the end.
 * y must not overlap x. */
GM_INLINE void gm_dense_s4_core(const gm_dense_s4_t *p, int8_t *GM_RESTRICT y,
                                const int8_t *GM_RESTRICT x, const uint8_t *GM_RESTRICT w,
                                const int32_t *GM_RESTRICT bias,
                                const int32_t *GM_RESTRICT multiplier)
{
    for (int32_t r = 0; r < p->rows; r++) {
        const uint8_t *wn = w;
        for (int32_t n = 0; n < p->cols; n += 4) {
            const int32_t last = p->cols - n < 4 ? p->cols - n : 4;
            int32_t acc[4] = {0, 0, 0, 0};
            int32_t sum = 0;
            for (int32_t k = 0; k < p->inner; k++) {
                const int32_t xv = x[k];
                acc[0] += xv * (wn[0] & 15);
                acc[1] += xv * (wn[0] >> 4);
                acc[2] += xv * (wn[1] & 15);
                acc[3] += xv * (wn[1] >> 4);
                sum += xv;
                wn += 2;
            }
            for (int32_t i = 0; i < last; i++) {
                y[n + i] = gm_requant_s8(acc[i] - 8 * sum + bias[n + i], multiplier[n + i],
                                         p->shift, p->zero_point, p->low, p->high);
            }
        }
        x += p->inner;
        y += p->cols;
    }
}

void gm_dense_s4(const gm_dense_s4_t *p, int8_t *GM_RESTRICT y, const int8_t *GM_RESTRICT x,
                 const uint8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                 const int32_t *GM_RESTRICT multiplier);

#ifdef __cplusplus
}
#endif

#endif
