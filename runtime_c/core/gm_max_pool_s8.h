/* SPDX-License-Identifier: Apache-2.0
 * Maximum over windows, int8, NHWC; padding never counts.
 * Its functions serve int16 as well: `size` is the bytes of an element of x and y. */
#ifndef GM_MAX_POOL_S8_H
#define GM_MAX_POOL_S8_H

#include "gm_stored.h"
#include "gm_window.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t batch;
    int32_t height; /* of x */
    int32_t width;
    int32_t out_height;
    int32_t out_width;
    int32_t kernel_height;
    int32_t kernel_width;
    int32_t stride_height;
    int32_t stride_width;
    int32_t dilation_height;
    int32_t dilation_width;
    int32_t pad_top;
    int32_t pad_left;
    int32_t channels;
} gm_max_pool_s8_t;

/* One row of the output from kernel_height rows of the input; NULL is a row of padding. */
GM_INLINE void gm_max_pool_row(const gm_max_pool_s8_t *p, int32_t size, void *y,
                               const void *const *rows)
{
    for (int32_t ox = 0; ox < p->out_width; ox++) {
        const int32_t first = ox * p->stride_width - p->pad_left;
        const int32_t from = gm_window_from(first, p->kernel_width, p->dilation_width, 0);
        const int32_t to = gm_window_to(first, p->kernel_width, p->dilation_width, p->width);
        const int32_t step = p->dilation_width * p->channels;
        for (int32_t c = 0; c < p->channels; c++) {
            const int32_t at = first * p->channels + c;
            int32_t m = size == 1 ? INT8_MIN : INT16_MIN;
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const void *row = rows[i];
                if (row) {
                    for (int32_t j = from; j < to; j++) {
                        const int32_t v = gm_get(row, at + j * step, size);
                        m = v > m ? v : m;
                    }
                }
            }
            gm_put(y, c, size, m);
        }
        y = gm_to(y, p->channels, size);
    }
}

/* y may be x where each output is written after the last read of what lies there.
 * scratch: kernel_height pointers where the window is taller than GM_WINDOW_ROWS, else NULL. */
GM_INLINE void gm_max_pool_stored(const gm_max_pool_s8_t *p, int32_t size, void *y, const void *x,
                                  void *GM_RESTRICT scratch)
{
    const int32_t row = p->width * p->channels * size;
    const void *few[GM_WINDOW_ROWS];
    const void **rows = p->kernel_height > GM_WINDOW_ROWS ? (const void **)scratch : few;
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const int32_t first = oy * p->stride_height - p->pad_top;
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int32_t iy = first + i * p->dilation_height;
                const int inside = iy >= 0 && iy < p->height;
                rows[i] = inside ? gm_from(x, iy, row) : NULL;
            }
            gm_max_pool_row(p, size, y, rows);
            y = gm_to(y, p->out_width * p->channels, size);
        }
        x = gm_from(x, p->height, row);
    }
}

GM_INLINE void gm_max_pool_s8_core(const gm_max_pool_s8_t *p, int8_t *y, const int8_t *x,
                                   void *GM_RESTRICT scratch)
{
    gm_max_pool_stored(p, 1, y, x, scratch);
}

void gm_max_pool_s8(const gm_max_pool_s8_t *p, int8_t *y, const int8_t *x,
                    void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
