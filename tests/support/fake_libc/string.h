/* Enough of string.h for a C parser. */
typedef unsigned long long size_t;
void *memcpy(void *to, const void *from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);
