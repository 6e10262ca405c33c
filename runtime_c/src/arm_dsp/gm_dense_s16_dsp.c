/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_dense_s16_dsp.h"

GM_KERNEL void gm_dense_s16_dsp(const gm_dense_s16_dsp_t *p, int16_t *GM_RESTRICT y,
                                const int16_t *GM_RESTRICT x, const int32_t *GM_RESTRICT w,
                                void *GM_RESTRICT scratch)
{
    gm_dense_s16_dsp_core(p, y, x, w, scratch);
}
