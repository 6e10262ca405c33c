#include "one_row_f32.h"

GM_KERNEL void one_row_f32(const one_row_f32_t *p, float *y, const float *x, const float *w,
                           const float *bias)
{
    for (int32_t n = 0; n < p->cols; n++, w += p->inner) {
        float total = bias[n];
        for (int32_t k = 0; k < p->inner; k++) {
            total += x[k] * w[k];
        }
        total = total < p->low ? p->low : total;
        y[n] = total > p->high ? p->high : total;
    }
}
