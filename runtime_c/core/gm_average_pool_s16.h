/* SPDX-License-Identifier: Apache-2.0
 * Average over windows, int16, see gm_average_pool_s8.h. */
#ifndef GM_AVERAGE_POOL_S16_H
#define GM_AVERAGE_POOL_S16_H

#include "gm_average_pool_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_average_pool_s8_t gm_average_pool_s16_t;

GM_INLINE void gm_average_pool_s16_core(const gm_average_pool_s16_t *p, int16_t *y,
                                        const int16_t *x, const int32_t *GM_RESTRICT multiplier,
                                        void *GM_RESTRICT scratch)
{
    gm_average_pool_stored(p, 2, y, x, multiplier, scratch);
}

void gm_average_pool_s16(const gm_average_pool_s16_t *p, int16_t *y, const int16_t *x,
                         const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
