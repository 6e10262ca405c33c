/* SPDX-License-Identifier: Apache-2.0
 * Fully connected layer, int8, for Armv6-M: one row times four channels at a time. */
#ifndef GM_DENSE_S8_HALFWORD_H
#define GM_DENSE_S8_HALFWORD_H

#include "gm_dense_s8.h"
#include "gm_halfword.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_dense_s8_t gm_dense_s8_halfword_t;

/* w: as for gm_halfword_bytes, a multiple of four words of weights. scratch: a row of x and zeros
 * up to a multiple of four; NULL where it is one. */
GM_INLINE void gm_dense_s8_halfword_core(const gm_dense_s8_halfword_t *p, int8_t *GM_RESTRICT y,
                                         const int8_t *GM_RESTRICT x, const int32_t *w,
                                         void *scratch)
{
    const int32_t steps = (p->inner + 3) / 4 * 4;
    gm_halfword_run_t run = {x, x + steps, y, p->zero_point, p->low, p->high, NULL};
    for (int32_t r = 0; r < p->rows; r++) {
        const int8_t *values = x;
        if (p->inner % 4 != 0) {
            memset(scratch, 0, (size_t)steps);
            memcpy(scratch, x, (size_t)p->inner);
            values = (const int8_t *)scratch;
        }
        run.x = values;
        run.x_end = values + steps;
        gm_halfword_channels(&run, y, (const uint32_t *)(const void *)w, p->cols, steps + 8, 0);
        x += p->inner;
        y += p->cols;
    }
}

void gm_dense_s8_halfword(const gm_dense_s8_halfword_t *p, int8_t *GM_RESTRICT y,
                          const int8_t *GM_RESTRICT x, const int32_t *w, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
