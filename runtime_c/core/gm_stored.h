/* SPDX-License-Identifier: Apache-2.0
 * Stored integers of one byte or two: cores that work on both take `size`, a constant at every
 * call, and are inlined with it. */
#ifndef GM_STORED_H
#define GM_STORED_H

#include "gm_types.h"

/* Element i of x, int8 (size 1) or int16 (size 2). */
GM_INLINE int32_t gm_get(const void *x, int32_t i, int32_t size)
{
    return size == 1 ? ((const int8_t *)x)[i] : ((const int16_t *)x)[i];
}

/* Write element i of y; the value fits. */
GM_INLINE void gm_put(void *y, int32_t i, int32_t size, int32_t value)
{
    if (size == 1) {
        ((int8_t *)y)[i] = (int8_t)value;
    } else {
        ((int16_t *)y)[i] = (int16_t)value;
    }
}

/* The address of element i. */
GM_INLINE const void *gm_from(const void *x, int32_t i, int32_t size)
{
    return (const char *)x + i * size;
}

GM_INLINE void *gm_to(void *y, int32_t i, int32_t size)
{
    return (char *)y + i * size;
}

#endif
