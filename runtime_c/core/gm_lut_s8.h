/* SPDX-License-Identifier: Apache-2.0
 * A function of one byte by table: y[i] = table[(uint8_t)x[i]]. */
#ifndef GM_LUT_S8_H
#define GM_LUT_S8_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t count; /* 0 or more */
} gm_lut_s8_t;

/* table: 256 bytes. x and y are bytes of any kind; y may be x. */
GM_INLINE void gm_lut_s8_core(const gm_lut_s8_t *p, void *y, const void *x,
                              const uint8_t *GM_RESTRICT table)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    int32_t i = 0;
    for (; i + 4 <= p->count; i += 4) {
        const uint8_t y0 = table[from[i]];
        const uint8_t y1 = table[from[i + 1]];
        const uint8_t y2 = table[from[i + 2]];
        const uint8_t y3 = table[from[i + 3]];
        to[i] = y0;
        to[i + 1] = y1;
        to[i + 2] = y2;
        to[i + 3] = y3;
    }
    for (; i < p->count; i++) {
        to[i] = table[from[i]];
    }
}

void gm_lut_s8(const gm_lut_s8_t *p, void *y, const void *x, const uint8_t *GM_RESTRICT table);

#ifdef __cplusplus
}
#endif

#endif
