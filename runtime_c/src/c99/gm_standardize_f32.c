/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_standardize_f32.h"

GM_KERNEL void gm_standardize_f32(const gm_standardize_f32_t *p, float *y, const float *x)
{
    gm_standardize_f32_core(p, y, x);
}
