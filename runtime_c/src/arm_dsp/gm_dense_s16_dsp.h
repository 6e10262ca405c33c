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

/* w: per four channels biases, weights and multipliers. y must not overlap x.
 * scratch: 8 bytes for each step; of one row 4 bytes, or NULL where `inner` is a multiple of 4. */
GM_INLINE void gm_dense_s16_dsp_core(const gm_dense_s16_dsp_t *p, int16_t *GM_RESTRICT y,
                                     const int16_t *GM_RESTRICT x, const int32_t *GM_RESTRICT w,
                                     void *GM_RESTRICT scratch)
{
    const int32_t steps = (p->inner + 3) / 4 * 2;
    const int32_t groups = (p->cols + 3) / 4;
    int32_t left = p->rows;
    while (left > 0) {
        const int32_t both = left > 1;
        gm_pair_run_t run = {(const int16_t *)scratch,
                             steps / 4 * (both ? 32 : 16),
                             steps * (both ? 8 : 4),
                             w,
                             y,
                             2 * p->cols,
                             p->zero_point,
                             gm_twice_s16(p->low),
                             gm_twice_s16(p->high),
                             groups,
                             p->shift,
                             p->cols - 4 * (groups - 1)};
        if (both) {
            gm_pair_gather((int16_t *)scratch, 0, x, x + p->inner, p->inner);
            gm_pair_product(&run);
        } else {
            if (p->inner % 4 != 0) {
                memcpy(scratch, x, (size_t)p->inner * sizeof(*x));
            } else {
                run.x = x;
            }
            gm_single_product(&run);
        }
        left -= 2;
        x += 2 * p->inner;
        y += 2 * p->cols;
    }
}

void gm_dense_s16_dsp(const gm_dense_s16_dsp_t *p, int16_t *GM_RESTRICT y,
                      const int16_t *GM_RESTRICT x, const int32_t *GM_RESTRICT w,
                      void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
