/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_s16_dsp.h"

GM_KERNEL void gm_conv2d_s16_dsp(const gm_conv2d_s16_dsp_t *p, int16_t *y, const int16_t *x,
                                 const int32_t *GM_RESTRICT w, void *GM_RESTRICT scratch)
{
    gm_conv2d_s16_dsp_core(p, y, x, w, scratch);
}
