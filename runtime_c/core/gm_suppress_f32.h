/* SPDX-License-Identifier: Apache-2.0
 * Non-maximum suppression: boxes by falling score, without those that overlap a better one. */
#ifndef GM_SUPPRESS_F32_H
#define GM_SUPPRESS_F32_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t batch;
    int32_t classes;
    int32_t number;  /* of boxes */
    int32_t count;   /* most boxes for each class, not more than number */
    float overlap;   /* intersection over union beyond which the worse box goes */
    float least;     /* scores must be above */
    int32_t centred; /* 1: boxes are centre and size, 0: two opposite corners, y first */
} gm_suppress_f32_t;

GM_INLINE void gm_suppress_edges(const float *box, int32_t centred, int32_t axis, float *low,
                                 float *high)
{
    if (centred) {
        *low = box[axis] - box[axis + 2] / 2.0f;
        *high = box[axis] + box[axis + 2] / 2.0f;
    } else {
        const float a = box[axis];
        const float b = box[axis + 2];
        *low = a < b ? a : b;
        *high = a < b ? b : a;
    }
}

GM_INLINE int gm_suppress_overlap(const float *a, const float *b, int32_t centred, float overlap)
{
    float shared = 1.0f;
    float area_a = 1.0f;
    float area_b = 1.0f;
    for (int32_t axis = 0; axis < 2; axis++) {
        float a_low;
        float a_high;
        float b_low;
        float b_high;
        float low;
        float high;
        gm_suppress_edges(a, centred, axis, &a_low, &a_high);
        gm_suppress_edges(b, centred, axis, &b_low, &b_high);
        low = a_low > b_low ? a_low : b_low;
        high = a_high < b_high ? a_high : b_high;
        if (high <= low) {
            return 0;
        }
        shared *= high - low;
        area_a *= a_high - a_low;
        area_b *= b_high - b_low;
    }
    if (area_a <= 0.0f || area_b <= 0.0f) {
        return 0;
    }
    return shared / (area_a + area_b - shared) > overlap;
}

/* boxes: [batch][boxes][4], scores: [batch][classes][boxes], selected: [batch * classes * count][3]
 * of batch, class and box, zeros behind the *extent ones that are meant; scratch: number bytes. */
GM_INLINE void gm_suppress_f32_core(const gm_suppress_f32_t *p, int64_t *GM_RESTRICT selected,
                                    int32_t *GM_RESTRICT extent, const float *GM_RESTRICT boxes,
                                    const float *GM_RESTRICT scores, void *GM_RESTRICT scratch)
{
    uint8_t *const taken = (uint8_t *)scratch;
    int32_t found = 0;
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t c = 0; c < p->classes; c++) {
            memset(taken, 0, (size_t)p->number);
            for (int32_t k = 0; k < p->count; k++) {
                int32_t best = -1;
                for (int32_t i = 0; i < p->number; i++) {
                    if (!taken[i] && scores[i] > (best < 0 ? p->least : scores[best])) {
                        best = i;
                    }
                }
                if (best < 0) {
                    break;
                }
                for (int32_t i = 0; i < p->number; i++) {
                    if (i == best || gm_suppress_overlap(boxes + best * 4, boxes + i * 4,
                                                         p->centred, p->overlap)) {
                        taken[i] = 1;
                    }
                }
                selected[found * 3] = n;
                selected[found * 3 + 1] = c;
                selected[found * 3 + 2] = best;
                found++;
            }
            scores += p->number;
        }
        boxes += p->number * 4;
    }
    for (int32_t i = found * 3; i < p->batch * p->classes * p->count * 3; i++) {
        selected[i] = 0;
    }
    *extent = found;
}

void gm_suppress_f32(const gm_suppress_f32_t *p, int64_t *GM_RESTRICT selected,
                     int32_t *GM_RESTRICT extent, const float *GM_RESTRICT boxes,
                     const float *GM_RESTRICT scores, void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
