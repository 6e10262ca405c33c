/* A fully connected layer for one row with a bias; the attributes are those of DenseF32. */
#ifndef ONE_ROW_F32_H
#define ONE_ROW_F32_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows;
    int32_t inner;
    int32_t cols;
    float low;
    float high;
} one_row_f32_t;

void one_row_f32(const one_row_f32_t *p, float *y, const float *x, const float *w,
                 const float *bias);

#ifdef __cplusplus
}
#endif

#endif
