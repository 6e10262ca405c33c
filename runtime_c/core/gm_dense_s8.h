/* SPDX-License-Identifier: Apache-2.0
 * Fully connected layer, int8: y[r][n] = requantize(bias[n] + sum_k x[r][k] * w[n][k]).
 * Its function serves int16 as well: `size` is the bytes of an element of x and y. */
#ifndef GM_DENSE_S8_H
#define GM_DENSE_S8_H

#include "gm_requant.h"
#include "gm_stored.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows;       /* 1 or more */
    int32_t inner;      /* K, 1 or more */
    int32_t cols;       /* N, 1 or more */
    int32_t shift;      /* left shift of the accumulator, 0..15 */
    int32_t zero_point; /* of y */
    int32_t low;        /* clamp of y, within the type of y */
    int32_t high;
} gm_dense_s8_t;

/* w: [ceil(N / 4)][K][4], missing rows as zeros. y must not overlap x. */
GM_INLINE void gm_dense_stored(const gm_dense_s8_t *p, int32_t size, void *GM_RESTRICT y,
                               const void *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                               const int32_t *GM_RESTRICT bias,
                               const int32_t *GM_RESTRICT multiplier)
{
    for (int32_t r = 0; r < p->rows; r++) {
        const int8_t *wn = w;
        for (int32_t n = 0; n < p->cols; n += 4) {
            const int32_t last = p->cols - n < 4 ? p->cols - n : 4;
            int32_t acc[4] = {0, 0, 0, 0};
            for (int32_t k = 0; k < p->inner; k++) {
                const int32_t xv = gm_get(x, k, size);
                acc[0] += xv * wn[0];
                acc[1] += xv * wn[1];
                acc[2] += xv * wn[2];
                acc[3] += xv * wn[3];
                wn += 4;
            }
            for (int32_t i = 0; i < last; i++) {
                gm_put(y, n + i, size,
                       gm_requant(acc[i] + bias[n + i], multiplier[n + i], p->shift, p->zero_point,
                                  p->low, p->high));
            }
        }
        x = gm_from(x, p->inner, size);
        y = gm_to(y, p->cols, size);
    }
}

GM_INLINE void gm_dense_s8_core(const gm_dense_s8_t *p, int8_t *GM_RESTRICT y,
                                const int8_t *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                                const int32_t *GM_RESTRICT bias,
                                const int32_t *GM_RESTRICT multiplier)
{
    gm_dense_stored(p, 1, y, x, w, bias, multiplier);
}

void gm_dense_s8(const gm_dense_s8_t *p, int8_t *GM_RESTRICT y, const int8_t *GM_RESTRICT x,
                 const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                 const int32_t *GM_RESTRICT multiplier);

#ifdef __cplusplus
}
#endif

#endif
