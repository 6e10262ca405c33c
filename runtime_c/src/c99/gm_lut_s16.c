/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_lut_s16.h"

GM_KERNEL void gm_lut_s16(const gm_lut_s16_t *p, int16_t *y, const int16_t *x,
                          const int16_t *GM_RESTRICT table)
{
    gm_lut_s16_core(p, y, x, table);
}
