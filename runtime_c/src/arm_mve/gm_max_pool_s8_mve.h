/* SPDX-License-Identifier: Apache-2.0
 * Maximum over windows, int8, NHWC, for MVE: sixteen channels at a time. */
#ifndef GM_MAX_POOL_S8_MVE_H
#define GM_MAX_POOL_S8_MVE_H

#include "gm_max_pool_s8.h"

#include <arm_mve.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_max_pool_s8_t gm_max_pool_s8_mve_t;

/* One row of the output from kernel_height rows of the input; NULL is a row of padding. */
GM_INLINE void gm_max_pool_s8_mve_row(const gm_max_pool_s8_mve_t *p, int8_t *y,
                                      const void *const *rows)
{
    const int32_t step = p->dilation_width * p->channels;
    for (int32_t ox = 0; ox < p->out_width; ox++) {
        const int32_t first = ox * p->stride_width - p->pad_left;
        const int32_t from = gm_window_from(first, p->kernel_width, p->dilation_width, 0);
        const int32_t to = gm_window_to(first, p->kernel_width, p->dilation_width, p->width);
        for (int32_t c = 0; c < p->channels; c += 16) {
            const mve_pred16_t lanes = vctp8q((uint32_t)(p->channels - c));
            int8x16_t most = vdupq_n_s8(INT8_MIN);
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int8_t *const row = (const int8_t *)rows[i];
                for (int32_t j = from; row != NULL && j < to; j++) {
                    const int8_t *const at = row + first * p->channels + j * step + c;
                    most = vmaxq_s8(most, vldrbq_z_s8(at, lanes));
                }
            }
            vstrbq_p_s8(y + c, most, lanes);
        }
        y += p->channels;
    }
}

/* y may be x where each output is written after the last read of what lies there. */
GM_INLINE void gm_max_pool_s8_mve_core(const gm_max_pool_s8_mve_t *p, int8_t *y, const int8_t *x)
{
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int32_t row = oy * p->stride_height - p->pad_top + i * p->dilation_height;
                const int inside = row >= 0 && row < p->height;
                rows[i] = inside ? x + row * p->width * p->channels : NULL;
            }
            gm_max_pool_s8_mve_row(p, y, rows);
            y += p->out_width * p->channels;
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_max_pool_s8_mve(const gm_max_pool_s8_mve_t *p, int8_t *y, const int8_t *x);

#ifdef __cplusplus
}
#endif

#endif
