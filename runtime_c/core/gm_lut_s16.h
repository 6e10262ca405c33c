/* SPDX-License-Identifier: Apache-2.0
 * A function of int16 by a table in 256 pieces, each as finely divided as the function needs. */
#ifndef GM_LUT_S16_H
#define GM_LUT_S16_H

#include "gm_stored.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t count; /* 0 or more */
} gm_lut_s16_t;

/* table: for the upper byte of x, from -128 on, where its entries begin (in units of an element of
 * the table) * 8 + n, an entry for every 2^n values; then the entries, of which the last of a piece
 * is the first of the next. Between entries lies a straight line. */
GM_INLINE int32_t gm_lut_s16_at(const int16_t *GM_RESTRICT table, int32_t x)
{
    const int32_t piece = (uint16_t)table[(x >> 8) + 128];
    const int32_t bits = piece & 7;
    const int16_t *v = table + (piece >> 3) + ((x & 255) >> bits);
    const int32_t part = x & ((1 << bits) - 1);
    const int32_t low = v[0];
    return low + (((v[1] - low) * part + (1 << bits >> 1)) >> bits);
}

/* y: elements of `size` bytes; it may be x. */
GM_INLINE void gm_lut_s16_stored(const gm_lut_s16_t *p, int32_t size, void *y, const int16_t *x,
                                 const int16_t *GM_RESTRICT table)
{
    int32_t i = 0;
    for (; i + 2 <= p->count; i += 2) {
        const int32_t y0 = gm_lut_s16_at(table, x[i]);
        const int32_t y1 = gm_lut_s16_at(table, x[i + 1]);
        gm_put(y, i, size, y0);
        gm_put(y, i + 1, size, y1);
    }
    if (i < p->count) {
        gm_put(y, i, size, gm_lut_s16_at(table, x[i]));
    }
}

GM_INLINE void gm_lut_s16_core(const gm_lut_s16_t *p, int16_t *y, const int16_t *x,
                               const int16_t *GM_RESTRICT table)
{
    gm_lut_s16_stored(p, 2, y, x, table);
}

void gm_lut_s16(const gm_lut_s16_t *p, int16_t *y, const int16_t *x,
                const int16_t *GM_RESTRICT table);

#ifdef __cplusplus
}
#endif

#endif
