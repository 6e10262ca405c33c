/* SPDX-License-Identifier: Apache-2.0
 * Places of the nonzero bytes of a row, in order; zeros behind them. */
#ifndef GM_FIND_NONZERO_H
#define GM_FIND_NONZERO_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t size;
} gm_find_nonzero_t;

GM_INLINE void gm_find_nonzero_core(const gm_find_nonzero_t *p, int64_t *GM_RESTRICT y,
                                    int32_t *GM_RESTRICT extent, const uint8_t *GM_RESTRICT x)
{
    int32_t found = 0;
    for (int32_t i = 0; i < p->size; i++) {
        y[i] = 0;
        if (x[i] != 0) {
            y[found] = i;
            found++;
        }
    }
    *extent = found;
}

void gm_find_nonzero(const gm_find_nonzero_t *p, int64_t *GM_RESTRICT y,
                     int32_t *GM_RESTRICT extent, const uint8_t *GM_RESTRICT x);

#ifdef __cplusplus
}
#endif

#endif
