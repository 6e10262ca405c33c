/* SPDX-License-Identifier: Apache-2.0
 * Fully connected layer, int8, for MVE: one row times four channels at a time. */
#ifndef GM_DENSE_S8_MVE_H
#define GM_DENSE_S8_MVE_H

#include "gm_dense_s8.h"
#include "gm_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_dense_s8_t gm_dense_s8_mve_t;

/* w: as for gm_mve_pair. */
GM_INLINE void gm_dense_s8_mve_core(const gm_dense_s8_mve_t *p, int8_t *GM_RESTRICT y,
                                    const int8_t *GM_RESTRICT x, const int32_t *GM_RESTRICT w)
{
    const int32_t whole = (p->inner - 1) / GM_MVE_LANES;
    const int32_t head = p->inner - whole * GM_MVE_LANES;
    for (int32_t r = 0; r < p->rows; r++) {
        gm_mve_pair_t run = {x,        x,      head,    whole,  y, y, p->zero_point,
                             p->shift, p->low, p->high, p->cols};
        gm_mve_one(&run, (const int8_t *)(const void *)w);
        x += p->inner;
        y += p->cols;
    }
}

void gm_dense_s8_mve(const gm_dense_s8_mve_t *p, int8_t *GM_RESTRICT y, const int8_t *GM_RESTRICT x,
                     const int32_t *GM_RESTRICT w);

#ifdef __cplusplus
}
#endif

#endif
