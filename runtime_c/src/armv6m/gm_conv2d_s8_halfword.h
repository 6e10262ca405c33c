/* SPDX-License-Identifier: Apache-2.0
 * Convolution, int8, NHWC, for Armv6-M: the window of a pixel is gathered as words, then multiplied
 * with four channels at a time. */
#ifndef GM_CONV2D_S8_HALFWORD_H
#define GM_CONV2D_S8_HALFWORD_H

#include "gm_conv2d_s8.h"
#include "gm_halfword.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_conv2d_s8_t gm_conv2d_s8_halfword_t;

/* The values of one window; a row that is NULL and pixels outside the image are padding. */
GM_INLINE void gm_conv2d_s8_halfword_gather(const gm_conv2d_s8_halfword_t *p, int32_t *to,
                                            const void *const *rows, int32_t first)
{
    const int32_t span = (p->kernel_width - 1) * p->dilation_width + 1;
    const int inside = first >= 0 && first + span <= p->width && p->dilation_width == 1;
    for (int32_t i = 0; i < p->kernel_height; i++) {
        const int8_t *const row = (const int8_t *)rows[i];
        if (row == NULL || inside) {
            const int8_t *const from = row == NULL ? NULL : row + first * p->channels;
            to = gm_halfword_expand(to, from, p->fill, p->kernel_width * p->channels);
            continue;
        }
        for (int32_t j = 0; j < p->kernel_width; j++) {
            const int32_t x = first + j * p->dilation_width;
            const int8_t *const from = x >= 0 && x < p->width ? row + x * p->channels : NULL;
            to = gm_halfword_expand(to, from, p->fill, p->channels);
        }
    }
}

/* `count` neighbouring pixels of the output from the rows of the input that they see. */
GM_INLINE void gm_conv2d_s8_halfword_row(const gm_conv2d_s8_halfword_t *p, int32_t count, int8_t *y,
                                         const void *const *rows, const int32_t *w, void *scratch)
{
    const int32_t inner = p->kernel_height * p->kernel_width * p->channels;
    const int32_t steps = (inner + 3) / 4 * 4;
    int32_t *const x = (int32_t *)scratch;
    gm_halfword_run_t run = {x, x + steps, y, p->zero_point, p->low, p->high, NULL};
    int32_t at = p->descending ? count - 1 : 0;
    for (int32_t k = inner; k < steps; k++) {
        x[k] = 0;
    }
    for (int32_t left = count; left > 0; left--) {
        gm_conv2d_s8_halfword_gather(p, x, rows, at * p->stride_width - p->pad_left);
        gm_halfword_channels(&run, y + at * p->out_channels, (const uint32_t *)(const void *)w,
                             p->out_channels, steps + 8, 1);
        at += p->descending ? -1 : 1;
    }
}

/* w: as for gm_halfword_wide, a multiple of four words of weights. scratch: a window of words.
 * y may be x where a window has one pixel and pixels of y are not wider. Without groups and shift.
 */
GM_INLINE void gm_conv2d_s8_halfword_core(const gm_conv2d_s8_halfword_t *p, int8_t *y,
                                          const int8_t *x, const int32_t *w, void *scratch)
{
    const int pointwise = p->kernel_height == 1 && p->kernel_width == 1 && p->stride_height == 1 &&
                          p->stride_width == 1 && p->padded_width == 0;
    if (pointwise) {
        /* the whole batch is one row */
        const void *const rows[1] = {x};
        gm_conv2d_s8_halfword_t line = *p;
        line.width = p->batch * p->height * p->width;
        gm_conv2d_s8_halfword_row(&line, line.width, y, rows, w, scratch);
        return;
    }
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int32_t row = oy * p->stride_height - p->pad_top + i * p->dilation_height;
                const int inside = row >= 0 && row < p->height;
                rows[i] = inside ? x + row * p->width * p->channels : NULL;
            }
            gm_conv2d_s8_halfword_row(p, p->out_width, y, rows, w, scratch);
            y += p->out_width * p->out_channels;
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_conv2d_s8_halfword(const gm_conv2d_s8_halfword_t *p, int8_t *y, const int8_t *x,
                           const int32_t *w, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
