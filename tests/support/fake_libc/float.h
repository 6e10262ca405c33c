/* Enough of float.h for a C parser. */
#define FLT_MAX 3.4e38f
#define FLT_EPSILON 1.2e-7f
#define DBL_MAX 1.8e308
