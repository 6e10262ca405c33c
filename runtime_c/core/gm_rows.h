/* SPDX-License-Identifier: Apache-2.0
 * Where the rows of a tensor lie, for layers that run row by row. */
#ifndef GM_ROWS_H
#define GM_ROWS_H

#include "gm_types.h"

typedef struct {
    const uint8_t *slots; /* for each row its place in a pool; NULL: row after row */
    int32_t offset;       /* of the first place in the arena */
    int32_t pitch;        /* bytes from place to place */
    int32_t height;       /* rows */
} gm_rows_t;

/* The address of a row. */
GM_OUTLINE void *gm_rows_at(uint8_t *arena, const gm_rows_t *t, int32_t row)
{
    const int32_t place = t->slots ? t->slots[row] : row;
    return arena + t->offset + place * t->pitch;
}

/* Point rows[k] to row first + k * dilation for k < kernel; NULL: a row of padding. */
GM_OUTLINE void gm_rows_window(uint8_t *arena, const gm_rows_t *t, int32_t first, int32_t kernel,
                               int32_t dilation, const void **rows)
{
    for (int32_t k = 0; k < kernel; k++) {
        const int32_t row = first + k * dilation;
        rows[k] = row >= 0 && row < t->height ? gm_rows_at(arena, t, row) : NULL;
    }
}

#endif
