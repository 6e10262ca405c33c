/* SPDX-License-Identifier: Apache-2.0
 * Fully connected layer, int16 with int8 weights: two rows times four channels, a last or only row
 * by itself, see gm_pair_product.h. */
#ifndef GM_DENSE_S16_DSP_H
#define GM_DENSE_S16_DSP_H

#include "gm_dense_s16.h"
#include "gm_pair_product.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_dense_s8_t gm_dense_s16_dsp_t;

/* Two values of x times two weights of four channels. */
GM_INLINE void gm_dense_s16_dsp_step(int32_t sums[4], uint32_t x, const int32_t *w)
{
    const uint32_t first = (uint32_t)w[0];
    const uint32_t second = (uint32_t)w[1];
    sums[0] = gm_multiply_two(x, gm_even_bytes(first), sums[0]);
    sums[1] = gm_multiply_two(x, gm_odd_bytes(first), sums[1]);
    sums[2] = gm_multiply_two(x, gm_even_bytes(second), sums[2]);
    sums[3] = gm_multiply_two(x, gm_odd_bytes(second), sums[3]);
}

/* One row. */
GM_INLINE void gm_dense_s16_dsp_row(const gm_dense_s8_t *p, int16_t *y, const int16_t *x,
                                    const int32_t *w, int32_t steps)
{
    const int32_t pairs = p->inner / 2;
    for (int32_t n = 0; n < p->cols; n += 4) {
        const int32_t last = p->cols - n < 4 ? p->cols - n : 4;
        const int32_t *v = w + 4;
        int32_t sums[4] = {w[0], w[1], w[2], w[3]};
        for (int32_t k = 0; k < pairs; k++) {
            gm_dense_s16_dsp_step(sums, gm_load_u32(x + 2 * k), v);
            v += 2;
        }
        if (p->inner % 2 != 0) {
            gm_dense_s16_dsp_step(sums, (uint16_t)x[p->inner - 1], v);
        }
        w += 4 + 2 * steps;
        for (int32_t i = 0; i < last; i++) {
            y[n + i] = (int16_t)gm_requant(sums[i], w[i], p->shift, p->zero_point, p->low, p->high);
        }
        w += 4;
    }
}

/* w: per four channels biases, weights and multipliers. y must not overlap x.
 * scratch: of several rows, 8 bytes for each step; else NULL. */
GM_INLINE void gm_dense_s16_dsp_core(const gm_dense_s16_dsp_t *p, int16_t *GM_RESTRICT y,
                                     const int16_t *GM_RESTRICT x, const int32_t *GM_RESTRICT w,
                                     void *GM_RESTRICT scratch)
{
    const int32_t steps = (p->inner + 3) / 4 * 2;
    const int32_t groups = (p->cols + 3) / 4;
    int32_t r = 0;
    for (; r + 2 <= p->rows; r += 2) {
        int16_t *const pair = (int16_t *)scratch;
        gm_pair_run_t run = {pair,
                             steps / 4 * 32,
                             steps * 8,
                             w,
                             y,
                             2 * p->cols,
                             p->zero_point,
                             gm_twice_s16(p->low),
                             gm_twice_s16(p->high),
                             groups,
                             p->shift,
                             p->cols - 4 * (groups - 1)};
        gm_pair_gather(pair, 0, x, x + p->inner, p->inner);
        gm_pair_product(&run);
        x += 2 * p->inner;
        y += 2 * p->cols;
    }
    if (r < p->rows) {
        gm_dense_s16_dsp_row(p, y, x, w, steps);
    }
}

void gm_dense_s16_dsp(const gm_dense_s16_dsp_t *p, int16_t *GM_RESTRICT y,
                      const int16_t *GM_RESTRICT x, const int32_t *GM_RESTRICT w,
                      void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
