/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_s8_mve.h"

GM_KERNEL void gm_conv2d_s8_mve(const gm_conv2d_s8_mve_t *p, int8_t *y, const int8_t *x,
                                const int32_t *w, void *scratch)
{
    gm_conv2d_s8_mve_core(p, y, x, w, scratch);
}
