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

/* w: as for gm_halfword_pixel, a multiple of four words of weights. scratch: a row of words. */
GM_INLINE void gm_dense_s8_halfword_core(const gm_dense_s8_halfword_t *p, int8_t *GM_RESTRICT y,
                                         const int8_t *GM_RESTRICT x, const int32_t *w,
                                         void *scratch)
{
    const int32_t steps = (p->inner + 3) / 4 * 4;
    int32_t *const wide = (int32_t *)scratch;
    gm_halfword_run_t run = {wide, wide + steps, y, p->zero_point, p->low, p->high, NULL};
    for (int32_t r = 0; r < p->rows; r++) {
        int32_t *const end = gm_halfword_expand(wide, x, 0, p->inner);
        (void)gm_halfword_expand(end, NULL, 0, steps - p->inner);
        gm_halfword_channels(&run, y, (const uint32_t *)(const void *)w, p->cols, steps + 8);
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
