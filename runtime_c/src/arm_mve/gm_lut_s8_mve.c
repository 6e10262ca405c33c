/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_lut_s8_mve.h"

GM_KERNEL void gm_lut_s8_mve(const gm_lut_s8_mve_t *p, void *y, const void *x,
                             const uint8_t *GM_RESTRICT table)
{
    gm_lut_s8_mve_core(p, y, x, table);
}
