/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_interpolate_f32.h"

GM_KERNEL void gm_interpolate_f32(const gm_interpolate_f32_t *p, float *GM_RESTRICT y,
                                  const float *GM_RESTRICT x, const int32_t *GM_RESTRICT index,
                                  const float *GM_RESTRICT weight, const float *GM_RESTRICT bias)
{
    gm_interpolate_f32_core(p, y, x, index, weight, bias);
}
