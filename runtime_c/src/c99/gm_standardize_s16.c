/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_standardize_s16.h"

GM_KERNEL void gm_standardize_s16(const gm_standardize_s16_t *p, int16_t *y, const int16_t *x,
                                  const int32_t *GM_RESTRICT scale, const int32_t *GM_RESTRICT bias)
{
    gm_standardize_s16_core(p, y, x, scale, bias);
}
