/* Enough of limits.h for a C parser. */
#define CHAR_BIT 8
