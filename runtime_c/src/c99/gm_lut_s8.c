/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_lut_s8.h"

GM_KERNEL void gm_lut_s8(const gm_lut_s8_t *p, void *y, const void *x,
                         const uint8_t *GM_RESTRICT table)
{
    gm_lut_s8_core(p, y, x, table);
}
