/* SPDX-License-Identifier: Apache-2.0
 * Maximum over windows, int16, see gm_max_pool_s8.h. */
#ifndef GM_MAX_POOL_S16_H
#define GM_MAX_POOL_S16_H

#include "gm_max_pool_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_max_pool_s8_t gm_max_pool_s16_t;

GM_INLINE void gm_max_pool_s16_core(const gm_max_pool_s16_t *p, int16_t *y, const int16_t *x,
                                    void *GM_RESTRICT scratch)
{
    gm_max_pool_stored(p, 2, y, x, scratch);
}

void gm_max_pool_s16(const gm_max_pool_s16_t *p, int16_t *y, const int16_t *x,
                     void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
