/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_find_nonzero.h"

GM_KERNEL void gm_find_nonzero(const gm_find_nonzero_t *p, int64_t *GM_RESTRICT y,
                               int32_t *GM_RESTRICT extent, const uint8_t *GM_RESTRICT x)
{
    gm_find_nonzero_core(p, y, extent, x);
}
