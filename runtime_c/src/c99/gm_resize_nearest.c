/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_resize_nearest.h"

GM_KERNEL void gm_resize_nearest(const gm_resize_nearest_t *p, void *GM_RESTRICT y,
                                 const void *GM_RESTRICT x, const int32_t *GM_RESTRICT rows,
                                 const int32_t *GM_RESTRICT cols)
{
    gm_resize_nearest_core(p, y, x, rows, cols);
}
