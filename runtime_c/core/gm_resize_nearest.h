/* SPDX-License-Identifier: Apache-2.0
 * Nearest-neighbour resizing of NHWC: y[n][i][j] = x[n][rows[i]][cols[j]], pixels of any type. */
#ifndef GM_RESIZE_NEAREST_H
#define GM_RESIZE_NEAREST_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t batch;
    int32_t height; /* of x */
    int32_t width;
    int32_t out_height; /* of y */
    int32_t out_width;
    int32_t pixel; /* bytes: channels times the size of an element */
} gm_resize_nearest_t;

/* rows: [out_height], in [0, height); cols: [out_width], in [0, width). y must not overlap x.
 * A row of y that repeats the row before is copied from it. */
GM_INLINE void gm_resize_nearest_core(const gm_resize_nearest_t *p, void *GM_RESTRICT y,
                                      const void *GM_RESTRICT x, const int32_t *GM_RESTRICT rows,
                                      const int32_t *GM_RESTRICT cols)
{
    const uint8_t *image = (const uint8_t *)x;
    uint8_t *out = (uint8_t *)y;
    const int32_t pitch = p->out_width * p->pixel;
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t i = 0; i < p->out_height; i++) {
            if (i > 0 && rows[i] == rows[i - 1]) {
                memcpy(out, out - pitch, (size_t)pitch);
            } else {
                const uint8_t *row = image + rows[i] * p->width * p->pixel;
                for (int32_t j = 0; j < p->out_width; j++) {
                    memcpy(out + j * p->pixel, row + cols[j] * p->pixel, (size_t)p->pixel);
                }
            }
            out += pitch;
        }
        image += p->height * p->width * p->pixel;
    }
}

void gm_resize_nearest(const gm_resize_nearest_t *p, void *GM_RESTRICT y, const void *GM_RESTRICT x,
                       const int32_t *GM_RESTRICT rows, const int32_t *GM_RESTRICT cols);

#ifdef __cplusplus
}
#endif

#endif
