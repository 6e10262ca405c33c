/* SPDX-License-Identifier: Apache-2.0
 * Average over windows, int8, NHWC: y = requantize(sum (x - fill)), the multiplier divides by the
 * number of taps.
 * Its functions serve int16 as well: `size` is the bytes of an element of x and y. */
#ifndef GM_AVERAGE_POOL_S8_H
#define GM_AVERAGE_POOL_S8_H

#include "gm_requant.h"
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
    int32_t count_top;  /* rows of padding above, columns of padding left of the image that */
    int32_t count_left; /* count as zeros; 0 where padding does not count */
    int32_t count_bottom;
    int32_t count_right;
    int32_t multipliers; /* entries of `multiplier` */
    int32_t fill;        /* the zero point of x */
    int32_t shift;       /* left shift of the sum, 0..15 */
    int32_t zero_point;  /* of y */
    int32_t low;         /* clamp of y, -128 <= low <= high <= 127 */
    int32_t high;
} gm_average_pool_s8_t;

/* How many taps of a window lie in [low, high). */
GM_INLINE int32_t gm_average_pool_counted(int32_t first, int32_t kernel, int32_t dilation,
                                          int32_t low, int32_t high)
{
    return gm_window_to(first, kernel, dilation, high) -
           gm_window_from(first, kernel, dilation, low);
}

/* One row of the output from kernel_height rows of the input; NULL is a row of padding, and
 * rows_counted of them count. */
GM_INLINE void gm_average_pool_row(const gm_average_pool_s8_t *p, int32_t size, void *y,
                                   const void *const *rows, int32_t rows_counted,
                                   const int32_t *GM_RESTRICT multiplier)
{
    const int32_t step = p->dilation_width * p->channels;
    int32_t rows_inside = 0;
    for (int32_t i = 0; i < p->kernel_height; i++) {
        rows_inside += rows[i] != NULL;
    }
    for (int32_t ox = 0; ox < p->out_width; ox++) {
        const int32_t first = ox * p->stride_width - p->pad_left;
        const int32_t from = gm_window_from(first, p->kernel_width, p->dilation_width, 0);
        const int32_t to = gm_window_to(first, p->kernel_width, p->dilation_width, p->width);
        const int32_t count =
            rows_counted * gm_average_pool_counted(first, p->kernel_width, p->dilation_width,
                                                   -p->count_left, p->width + p->count_right);
        const int32_t m = multiplier[p->multipliers == 1 ? 0 : count - 1];
        for (int32_t c = 0; c < p->channels; c++) {
            const int32_t at = first * p->channels + c;
            int32_t acc = -p->fill * rows_inside * (to - from);
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const void *row = rows[i];
                if (row) {
                    for (int32_t j = from; j < to; j++) {
                        acc += gm_get(row, at + j * step, size);
                    }
                }
            }
            gm_put(y, c, size,
                   gm_requant_average(acc, m, p->shift, p->zero_point, p->low, p->high));
        }
        y = gm_to(y, p->channels, size);
    }
}

/* multiplier: one for each number of counted taps from 1, or a single one where that number is
 * always the same. y may be x where each output is written after the last read of what lies there.
 * scratch: kernel_height pointers where the window is taller than GM_WINDOW_ROWS, else NULL. */
GM_INLINE void gm_average_pool_stored(const gm_average_pool_s8_t *p, int32_t size, void *y,
                                      const void *x, const int32_t *GM_RESTRICT multiplier,
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
            const int32_t counted =
                gm_average_pool_counted(first, p->kernel_height, p->dilation_height, -p->count_top,
                                        p->height + p->count_bottom);
            gm_average_pool_row(p, size, y, rows, counted, multiplier);
            y = gm_to(y, p->out_width * p->channels, size);
        }
        x = gm_from(x, p->height, row);
    }
}

GM_INLINE void gm_average_pool_s8_core(const gm_average_pool_s8_t *p, int8_t *y, const int8_t *x,
                                       const int32_t *GM_RESTRICT multiplier,
                                       void *GM_RESTRICT scratch)
{
    gm_average_pool_stored(p, 1, y, x, multiplier, scratch);
}

void gm_average_pool_s8(const gm_average_pool_s8_t *p, int8_t *y, const int8_t *x,
                        const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
