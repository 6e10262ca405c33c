/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_log_softmax_f32.h"

GM_KERNEL void gm_log_softmax_f32(const gm_log_softmax_f32_t *p, float *y, const float *x)
{
    gm_log_softmax_f32_core(p, y, x);
}
